"""Moves everybody to the other side of a flow and back: where copies were cut, groups, and what diverged."""
