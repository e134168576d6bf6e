"""State of originals and copies during a failover or a failback."""
