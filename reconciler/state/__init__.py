"""The internal topics: ownership, status, control; nobody else reads or writes them."""
