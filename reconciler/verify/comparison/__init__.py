"""Comparison of two logs, record by record. Pure."""
