"""Which remote topics a topology declares: names, settings, offsets and limits."""
