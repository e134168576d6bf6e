"""Offsets: committed positions, shifted runs, translated offsets, and results of comparisons."""
