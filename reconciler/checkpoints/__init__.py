"""Consumers on both sides: checkpoints and heartbeats in MirrorMaker 2's formats, written and read."""
