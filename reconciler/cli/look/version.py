"""`anabranch version`: what `--version` prints."""

from __future__ import annotations

import typer

from reconciler import __version__


def version() -> None:
    """Print the version and end."""
    typer.echo(f"anabranch {__version__}")
