"""Desired against observed becomes steps. Pure: no clock, no network."""
