"""Which remote topics a topology asks for: names, settings, offsets and limits."""
