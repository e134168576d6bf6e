"""MirrorMaker 2's topics and formats of checkpoints, heartbeats and offset syncs."""
