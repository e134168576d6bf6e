"""The types of replication policies."""
