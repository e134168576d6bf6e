"""ACLs that flows need, and ACLs of originals that copies get."""
