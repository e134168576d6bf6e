"""The right to write to remote partitions."""
