"""Consumers: what groups have committed, where flows stand, and moving them.

It holds a Kafka client, and is called by `cli` alone.
"""
