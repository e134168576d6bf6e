"""`anabranch validate`: check topology files without connecting to anything."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import asdict
from typing import Annotated

import typer

from reconciler.cli.common import Files, load_topology
from reconciler.cli.formats import print_json
from reconciler.cli.shared_options import Output
from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.topology import Topology
from reconciler.operate.checking import check_references


def validate(
    files: Files,
    output: Output = "text",
    resolve: Annotated[bool, typer.Option("--resolve", help="Also look every reference up on this machine.")] = False,
) -> None:
    """Check topology files and show all problems.

    Nothing is connected to. As JSON, problems are on standard output alone.
    """
    try:
        topology = load_topology(files)
        if resolve:
            check_references(topology)
    except AnabranchError as error:
        if output == "json":
            print_json({"valid": False, "problems": [asdict(problem) for problem in error.problems]})
            raise typer.Exit(error.exit_code) from None
        raise
    if output == "json":
        print_json(_summary(topology))
    else:
        typer.echo(f"{topology.name}: {_count(topology.clusters, 'cluster')}, {_count(topology.flows, 'flow')}: valid")


def _summary(topology: Topology) -> dict[str, object]:
    return {
        "name": topology.name,
        "valid": True,
        "problems": [],
        "digest": topology.digest,
        "clusters": [{"alias": c.alias, "datacenter": c.datacenter} for c in topology.clusters.values()],
        "flows": [
            {
                "name": flow.name,
                "from": flow.source,
                "to": flow.target,
                "enabled": flow.enabled,
                "failed_over": flow.failed_over,
                "origin": flow.origin,
            }
            for flow in topology.flows
        ],
    }


def _count(items: Sized, noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"
