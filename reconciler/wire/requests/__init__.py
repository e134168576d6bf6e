"""Typed requests to one cluster."""
