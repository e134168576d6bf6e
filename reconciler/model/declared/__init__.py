"""The topology as declared: clusters, data centres and flows."""
