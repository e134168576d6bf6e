"""`anabranch validate`: check topology files without connecting to anything."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import asdict
from typing import Annotated

import typer

from reconciler.cli.common import FORMAT, Files, TextOrJson, as_written, load_topology, print_json
from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Problem
from reconciler.model.declared.topology import Topology


def validate(
    files: Files,
    output: Annotated[
        TextOrJson, typer.Option(*FORMAT, callback=as_written, help="How the result is written.")
    ] = "text",
    resolve: Annotated[bool, typer.Option("--resolve", help="Also look every reference up on this machine.")] = False,
) -> None:
    """Check topology files and show all problems.

    Nothing is connected to. As JSON, problems are on standard output alone.
    """
    try:
        topology = load_topology(files)
        if resolve:
            _resolve(topology)
    except AnabranchError as error:
        if output == "json":
            print_json({"valid": False, "problems": [asdict(problem) for problem in error.problems]})
            raise typer.Exit(error.exit_code) from None
        raise
    if output == "json":
        print_json(_summary(topology))
    else:
        typer.echo(f"{topology.name}: {_count(topology.clusters, 'cluster')}, {_count(topology.flows, 'flow')}: valid")


def _resolve(topology: Topology) -> None:
    """Look every reference up and forget it again, but for those of clusters that may not be connected to from here.

    Raises:
        EnvironmentFault: AB309, with every such cluster; AB304, with every reference that leads to nothing, or to what
            its field does not take.
    """
    problems: list[Problem] = []
    for cluster in topology.clusters.values():
        try:
            cluster.check_hosts()
        except EnvironmentFault as error:
            problems += error.problems
            continue
        problems += cluster.unresolved()
    for datacenter in topology.datacenters.values():
        try:
            _ = datacenter.spark.address
        except EnvironmentFault as error:
            problems += error.problems
    if problems:
        raise EnvironmentFault(list(dict.fromkeys(problems)))


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
