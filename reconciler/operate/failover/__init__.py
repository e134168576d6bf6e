"""What `failover` and `failback` do beside the moves of `reconciler.failover`."""
