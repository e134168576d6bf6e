"""Filling of offsets that hold no records, and the probe that tries whether a target allows it."""
