"""Observed and desired state, and the steps that lead from one to the other."""
