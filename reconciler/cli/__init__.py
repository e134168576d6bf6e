"""One thin file per command."""

from reconciler.starting import start_lightly

start_lightly()
