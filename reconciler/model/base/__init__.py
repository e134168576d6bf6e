"""Errors, text, files and shapes of values: what every other room of the model stands on."""
