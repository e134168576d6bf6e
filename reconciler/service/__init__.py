"""The HTTP service of `anabranch serve`: status, metrics, pause and resume, for people and for programs."""
