"""What a release is made of: the wheel, the sdist, the lock with hashes, the list of components, and checksums of all.

`make lock` and `make release` run it; nothing of the product imports it.
"""
