"""Fetching from the source and producing to the target."""
