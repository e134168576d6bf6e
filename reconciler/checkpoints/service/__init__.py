"""The periodic rounds that publish checkpoints and heartbeats and sync group offsets."""
