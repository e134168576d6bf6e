"""One run of `replicate`: Spark, the reconcile loop and supervision."""
