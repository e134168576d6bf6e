"""Kafka Connect's REST interface, for the tools that know it: over workers of our own, and over declared flows."""
