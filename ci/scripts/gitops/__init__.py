"""What the scripts of the pipelines share. It needs Python and the `anabranch` command, and nothing else."""
