"""Options that choose clusters, one flow, and remote topics: `--clusters`, `--flow`, `--target`."""

from __future__ import annotations

from typing import Annotated

import typer

from reconciler.cli.completing import cluster_aliases, flow_names

Clusters = Annotated[
    list[str] | None,
    typer.Option(
        "--clusters",
        metavar="A,B",
        autocompletion=cluster_aliases,
        help="Only the flows into these clusters; a comma list, or repeated.",
    ),
]
OneFlow = Annotated[
    str | None,
    typer.Option("--flow", "-f", metavar="NAME", autocompletion=flow_names, help="Only this flow."),
]
Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--target", metavar="TOPIC", help="Only this remote topic, by its name at the target; may be repeated."
    ),
]
