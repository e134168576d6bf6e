"""Committed positions of copies that have offsets of their own."""
