"""YAML files become a validated topology; nobody else reads YAML."""

from reconciler.declare.loader import load

__all__ = ["load"]
