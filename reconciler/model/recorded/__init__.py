"""Values that are kept at targets, in compacted topics."""
