"""Live clusters become observed state, read-only."""
