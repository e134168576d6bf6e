"""Consumer groups of one cluster: read, commit and move their offsets."""
