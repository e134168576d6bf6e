"""Exact translation of offsets between an original and its copy."""
