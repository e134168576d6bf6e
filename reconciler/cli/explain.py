"""`anabranch explain`: what becomes of topics, and which line of the topology files says so."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from reconciler.cli.common import Files, load_topology, print_json, stdout_console
from reconciler.model.flow import Flow
from reconciler.model.topology import Topology

_Format = Literal["text", "json", "commands"]


def explain(
    files: Files,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="NAME", help="What becomes of the topic of this name; may be repeated."),
    ] = None,
    flow: Annotated[str | None, typer.Option("--flow", metavar="NAME", help="Only this flow.")] = None,
    acls: Annotated[
        bool, typer.Option("--acls", help="Which ACLs the flows need on each cluster, to replicate and to apply.")
    ] = False,
    output: Annotated[
        _Format, typer.Option("--format", help="How the result is written; commands, of kafka-acls.sh, with --acls.")
    ] = "text",
) -> None:
    """Say how flows name remote topics, what becomes of single topics, and which ACLs are needed.

    Nothing is connected to: the topics need not be there.
    """
    from reconciler.report.explain import explained, explained_text

    topology = load_topology(files)
    names = [one.name for one in topology.flows]
    if flow is not None and flow not in names:
        message = f"no flow {flow} is declared; there are {', '.join(names)}"
        raise typer.BadParameter(message, param_hint="--flow")
    if output == "commands" and not acls:
        message = "commands are there for --acls alone"
        raise typer.BadParameter(message, param_hint="--format")
    chosen = [one for one in topology.flows if flow in (None, one.name)]
    if acls:
        _print_acls(topology, [one for one in chosen if one.enabled or flow is not None], output)
        return
    told = explained(topology, chosen, topics or [])
    if output == "json":
        print_json(told)
    else:
        stdout_console().print(explained_text(told))


def _print_acls(topology: Topology, flows: Sequence[Flow], output: _Format) -> None:
    from reconciler.plan.acls import needed_acls, principal, remarks
    from reconciler.report.acls import acls_commands, acls_json, acls_text, granted

    principals = {alias: principal(cluster) for alias, cluster in topology.clusters.items()}
    told = granted(topology, needed_acls(topology, flows), principals, remarks(topology, flows))
    if output == "json":
        print_json(acls_json(told))
    elif output == "commands":
        sys.stdout.write(acls_commands(told))
    else:
        stdout_console().print(acls_text(told))
