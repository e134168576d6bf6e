"""Moves consumers and producers to the target of a flow and back: cuts of copies, group offsets, diverged records."""
