"""Status and lag of running flows, as text and JSON."""
