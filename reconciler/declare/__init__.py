"""YAML files become a validated topology; nobody else reads YAML."""

from reconciler.declare.loader import load, load_with_fields

__all__ = ["load", "load_with_fields"]
