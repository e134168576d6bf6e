"""One run of `replicate`: the reconcile loop and supervision."""
