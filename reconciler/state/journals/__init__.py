"""Journals: compacted topics of JSON values, and what all of them share."""
