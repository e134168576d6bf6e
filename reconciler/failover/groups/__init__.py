"""Positions of consumer groups during a failover or a failback."""
