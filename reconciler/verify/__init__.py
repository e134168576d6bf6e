"""Compares copies with their originals, record by record, over all that both hold."""
