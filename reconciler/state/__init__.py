"""The internal topics on targets: ownership, status, control and copies. Only this package reads and writes them."""
