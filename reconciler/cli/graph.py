"""`anabranch graph`: draw what topology files expand to."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from reconciler.cli.common import Files, load_topology, stdout_console
from reconciler.cli.formats import FORMAT


def graph(
    files: Files,
    output: Annotated[Literal["text", "mermaid", "svg"], typer.Option(*FORMAT, help="How it is drawn.")] = "text",
) -> None:
    """Draw clusters and flows."""
    from reconciler.report.pictures.graph import graph_mermaid, graph_svg, graph_text

    topology = load_topology(files)
    if output == "mermaid":
        sys.stdout.write(graph_mermaid(topology))
    elif output == "svg":
        sys.stdout.write(graph_svg(topology))
    else:
        stdout_console().print(graph_text(topology))
