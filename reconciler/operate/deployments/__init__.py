"""Deployments of data centres: observed, planned, carried out and awaited."""
