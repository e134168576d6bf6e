"""`pause`, `resume` and `restart`: what a run does, changed while it runs."""
