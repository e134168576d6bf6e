"""`anabranch render`: write the manifests of data centres that run on Kubernetes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.common import Files, load_topology, say
from reconciler.cli.planning import DIFFERENT
from reconciler.operate.deployments.rendering import as_one, differences, rendered, write
from reconciler.operate.targets import InvalidArgument


def render(
    files: Files,
    *,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", file_okay=False, help="Write them to DIR/DATACENTRE; by default they are printed."),
    ] = None,
    datacenter: Annotated[
        str | None, typer.Option("--datacenter", metavar="NAME", help="Of this data centre alone.")
    ] = None,
    helm: Annotated[
        bool, typer.Option("--helm", help="Write a Helm chart for each data centre, with image and Secrets as values.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; end with 3 where DIR is not as it would be written.")
    ] = False,
) -> None:
    """Write the manifests of data centres of kind kubernetes. No cluster is connected to."""
    if out is None and (check or helm):
        message = "it needs a folder to look at" if check else "a chart is several files, and needs a folder for them"
        raise typer.BadParameter(message, param_hint="--out")
    try:
        made = rendered(load_topology(files), datacenter, as_chart=helm)
    except InvalidArgument as error:
        raise typer.BadParameter(error.message, param_hint="--datacenter" if datacenter else "FILE...") from None
    if out is None:
        sys.stdout.write(as_one(made))
    elif check:
        if found := differences(made, out):
            for line in found:
                say(line)
            raise typer.Exit(DIFFERENT)
    else:
        write(made, out)
