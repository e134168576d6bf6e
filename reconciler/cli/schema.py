"""`anabranch schema`: print the JSON Schema of topology files."""

from __future__ import annotations

import sys


def schema() -> None:
    """Print the JSON Schema of topology files."""
    from reconciler.declare.resources import schema_text

    sys.stdout.write(schema_text())
