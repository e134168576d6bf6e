"""`anabranch deployments`: what this machine runs of a topology: how each process fares, its log, and a restart."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from reconciler.cli.common import TERMINAL, Files, load_topology, say, stdout_console
from reconciler.cli.formats import print_json
from reconciler.cli.planning import DIFFERENT
from reconciler.operate.deployments.carrying import DeploymentControls, DeploymentWork
from reconciler.operate.deployments.observed import Deployments
from reconciler.operate.targets import InvalidArgument


def deployments(
    files: Files,
    *,
    datacenter: Annotated[
        str | None, typer.Option("--datacenter", metavar="NAME", help="Of this data centre alone.")
    ] = None,
    log: Annotated[
        str | None, typer.Option("--log", metavar="PROCESS", help="Print the end of the log of a process instead.")
    ] = None,
    lines: Annotated[int, typer.Option("--lines", min=1, help="How many lines of it.")] = 100,
    restart: Annotated[
        str | None, typer.Option("--restart", metavar="PROCESS", help="Have a new start of a process take its place.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="End with 3 when a process does not run.")
    ] = False,
) -> None:
    """Show the processes that apply deployed on this machine; changes nothing without --restart."""
    from reconciler.report.deployments import processes_json, processes_text

    if log is not None and restart is not None:
        message = "name one of --log and --restart"
        raise typer.BadParameter(message, param_hint="--log")
    deployed = Deployments(load_topology(files))
    if log is not None:
        with _named_by("--log"):
            sys.stdout.write(deployed.log(log, lines, datacenter))
        return
    if restart is not None:
        with _named_by("--restart"):
            process = deployed.named(restart, datacenter)
        DeploymentWork(deployed, DeploymentControls(reporter=TERMINAL)).restart(process)
        say(f"{process.datacenter}: {restart} was started anew")
        return
    found = deployed.processes(datacenter)
    if as_json:
        print_json(processes_json(deployed.topology.name, found))
    else:
        stdout_console().print(processes_text(deployed.topology.name, found))
    if detailed_exitcode and not all(one.is_running for one in found):
        raise typer.Exit(DIFFERENT)


@contextmanager
def _named_by(option: str) -> Iterator[None]:
    """Give the errors of a process's name the option that it is the value of."""
    try:
        yield
    except InvalidArgument as error:
        raise typer.BadParameter(error.message, param_hint=option) from None
