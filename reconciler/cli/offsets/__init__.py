"""`anabranch offsets`: where consumer groups stand, read, translated and written."""
