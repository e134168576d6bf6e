"""Comparison of an original with its copy, and what is stored about copies."""
