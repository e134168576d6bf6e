"""Topics that a failover or a failback creates, deletes or fills."""
