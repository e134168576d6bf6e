"""Metrics of flows for Prometheus and what reads its formats, from the status topics alone."""
