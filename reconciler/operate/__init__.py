"""Plan, apply, status and drift as a library: no terminal, no printing, no exit codes.

Progress goes to a `Reporter`; problems are raised as the errors of `reconciler.model.errors`.
"""
