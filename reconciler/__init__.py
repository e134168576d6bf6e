"""Anabranch: Kafka clusters kept in step by declared topologies.

The rooms and the rules between them are drawn in ARCHITECTURE.md.
"""

__version__ = "0.1.0"
