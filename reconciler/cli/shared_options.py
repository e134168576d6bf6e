"""Options that several commands share: what is chosen (`--clusters`, `--flow`, `--target`), and what is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.completing import cluster_aliases, flow_names
from reconciler.cli.formats import FORMAT, PlanFormat, TextOrData, as_written
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.removals import DELETION_KINDS, DeletionKind

Clusters = Annotated[
    list[str] | None,
    typer.Option(
        "--clusters",
        metavar="A,B",
        autocompletion=cluster_aliases,
        help="Only the flows into these clusters; a comma list, or repeated.",
    ),
]
DeletesYes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask. It allows no deletion.")]
LockWait = Annotated[
    float, typer.Option("--wait", metavar="SECONDS", min=0.0, help="How long to wait for another apply to end.")
]
PlanOutput = Annotated[PlanFormat, typer.Option(*FORMAT, callback=as_written, help="How plan and outcome are written.")]
Output = Annotated[TextOrData, typer.Option(*FORMAT, callback=as_written, help="How the result is written.")]
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
TakeOver = Annotated[
    bool,
    typer.Option(
        "--take-over",
        help="Also where another owner's declaration of this topology is in force. Nothing else allows it.",
    ),
]

TlsCertificate = Annotated[
    Path | None, typer.Option("--tls-certificate", metavar="FILE", help="Certificate chain, as PEM.")
]
TlsKey = Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Its private key.")]
Overrides = Annotated[
    bool,
    typer.Option("--overrides/--no-overrides", help="Whether changes of flows at run time count, or files alone."),
]
AuditLogFile = Annotated[
    Path | None,
    typer.Option("--audit-log", metavar="FILE", help="Append actions and their callers, as JSON lines."),
]


def check_flow(topology: Topology, name: str | None) -> None:
    """Check that the flow is declared that `--flow` names, if it names one; errors are those of `declared_flow`."""
    if name is not None:
        declared_flow(topology, name)


def declared_flow(topology: Topology, name: str, hint: str = "--flow") -> Flow:
    """Return a flow by its name, enabled or not.

    Args:
        topology: what is declared.
        name: of the flow.
        hint: the option or argument that names it.

    Raises:
        typer.BadParameter: there is none; the message has those that there are.
    """
    found = next((flow for flow in topology.flows if flow.name == name), None)
    if found is None:
        message = f"no flow {name} is declared; there are {', '.join(flow.name for flow in topology.flows) or 'none'}"
        raise typer.BadParameter(message, param_hint=hint)
    return found


_ALLOW_DELETE = "--allow-delete"
# Longer numbers are no counts.
_DIGITS = 9

AllowDelete = Annotated[
    list[str] | None,
    typer.Option(
        _ALLOW_DELETE,
        metavar="KIND=N",
        help="Delete at most N things of a kind, as topic=3 or acl=1. Nothing else allows it, not --yes.",
    ),
]


def allowances(said: Sequence[str] | None) -> dict[DeletionKind, int] | None:
    """Return how many things of each kind may be deleted; None where the option is not given.

    Raises:
        typer.BadParameter: an item is not of the form `topic=N` or `acl=N`, or names a kind twice.
    """
    if not said:
        return None
    found: dict[DeletionKind, int] = {}
    for one in said:
        name, _, number = one.partition("=")
        kind = next((kind for kind in DELETION_KINDS if kind == name), None)
        if kind is None or not (number.isascii() and number.isdecimal() and len(number) <= _DIGITS) or kind in found:
            message = f"expected {' or '.join(f'{kind}=N' for kind in DELETION_KINDS)}, once; found {one}"
            raise typer.BadParameter(message, param_hint=_ALLOW_DELETE)
        found[kind] = int(number)
    return found
