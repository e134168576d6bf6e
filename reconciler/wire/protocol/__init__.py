"""Requests and responses as bytes and values, without sockets."""
