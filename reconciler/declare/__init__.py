"""YAML files become a validated topology; no other room reads YAML."""

from reconciler.declare.loader import lay_over, load, load_with_fields

__all__ = ["lay_over", "load", "load_with_fields"]
