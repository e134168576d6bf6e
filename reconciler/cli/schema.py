"""`anabranch schema`: print the JSON Schema of topology files, or of what a command prints as JSON."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer


def schema(
    of: Annotated[
        Literal["topology", "plan", "apply", "drift", "events"],
        typer.Argument(help="Of topology files, or of what a command prints with --format json."),
    ] = "topology",
) -> None:
    """Print a JSON Schema (draft-07)."""
    from reconciler.declare.documents.resources import report_schema_text, schema_text

    sys.stdout.write(schema_text() if of == "topology" else report_schema_text(of))
