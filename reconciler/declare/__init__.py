"""YAML files become a validated topology; no other room reads YAML."""

from reconciler.declare.loader import load, load_with_fields

__all__ = ["load", "load_with_fields"]
