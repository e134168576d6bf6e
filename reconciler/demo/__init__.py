"""The demo: embedded clusters, real-looking orders, and proof that the copy is the original."""
