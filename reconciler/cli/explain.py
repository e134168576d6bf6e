"""`anabranch explain`: what becomes of topics, and which line of the topology files says so."""

from __future__ import annotations

from typing import Annotated

import typer

from reconciler.cli.common import Files, TextOrJson, load_topology, print_json, stdout_console


def explain(
    files: Files,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="NAME", help="What becomes of the topic of this name; may be repeated."),
    ] = None,
    flow: Annotated[str | None, typer.Option("--flow", metavar="NAME", help="Only this flow.")] = None,
    output: Annotated[TextOrJson, typer.Option("--format", help="How the result is written.")] = "text",
) -> None:
    """Say how flows name remote topics, and what becomes of single topics.

    Nothing is connected to: the topics need not be there.
    """
    from reconciler.report.explain import explained, explained_text

    topology = load_topology(files)
    names = [one.name for one in topology.flows]
    if flow is not None and flow not in names:
        message = f"no flow {flow} is declared; there are {', '.join(names)}"
        raise typer.BadParameter(message, param_hint="--flow")
    told = explained(topology, [one for one in topology.flows if flow in (None, one.name)], topics or [])
    if output == "json":
        print_json(told)
    else:
        stdout_console().print(explained_text(told))
