"""Consumers on both sides: where groups stand, translated exactly, written, read and moved."""
