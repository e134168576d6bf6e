"""Connections to brokers, and the event loop that they share."""
