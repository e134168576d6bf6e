"""The data plane: whole record batches from source to target, run by Spark."""
