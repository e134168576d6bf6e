"""Commands for coming from other tools."""
