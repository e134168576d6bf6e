"""Record batches as bytes: read, check, split, merge, rewrite, compress. Pure."""
