"""Carries the steps of a plan out."""
