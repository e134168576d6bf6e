"""The words of the house as frozen values: standard library alone, no I/O."""
