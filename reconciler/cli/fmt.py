"""`anabranch fmt`: topology files in one style."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from reconciler.cli.common import Files, stdout_console
from reconciler.cli.planning import DIFFERENT


def fmt(
    files: Files,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing: print which files would change; exit code 3 if any.")
    ] = False,
) -> None:
    """Write topology files in one style: indentation, blank lines. Comments and quotes stay; - prints to stdout."""
    from reconciler.declare.documents.reader import STDIN
    from reconciler.declare.formatting import formatted
    from reconciler.model.base.files import replace_text

    changed = False
    # All are read before the first is written.
    for path, (before, after) in [(path, formatted(path)) for path in files]:
        if path == STDIN and not check:
            sys.stdout.write(after)
        elif before != after:
            changed = True
            stdout_console().print(str(path))
            if not check:
                replace_text(path, after)
    if changed and check:
        raise typer.Exit(DIFFERENT)
