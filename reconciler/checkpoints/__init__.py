"""Consumers: where what they have read stands on the other side, and what is said and done about it."""
