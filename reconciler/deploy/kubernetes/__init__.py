"""Manifests of Kubernetes for what a data centre runs."""
