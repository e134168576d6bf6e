"""Makes topologies of what other replicators are configured with."""
