"""Spark, and the rounds of a run as its jobs."""
