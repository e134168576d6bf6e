"""Journals: compacted topics with one partition and JSON values by key, and their code."""
