"""`demo` and `sandbox`: everything on this machine, on real brokers."""
