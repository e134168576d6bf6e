"""What `plan`, `apply` and `destroy` share about deletions: the option that allows them, and what is asked before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from reconciler.cli.common import ask, stderr_console
from reconciler.model.base.errors import Problem, Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.removals import DELETION_KINDS, DeleteTopic, DeletionKind
from reconciler.model.planning.steps import Plan

_OPTION = "--allow-delete"
# Longer numbers are no counts.
_DIGITS = 9

AllowDelete = Annotated[
    list[str] | None,
    typer.Option(
        _OPTION,
        metavar="KIND=N",
        help="Delete at most N things of a kind, as topic=3 or acl=1. Nothing else allows it, not --yes.",
    ),
]


def allowances(said: Sequence[str] | None) -> dict[DeletionKind, int] | None:
    """Return how many things of each kind may be deleted; None where nobody spoke of deleting.

    Raises:
        typer.BadParameter: what was said is not of the form `topic=N` or `acl=N`, or speaks twice of a kind.
    """
    if not said:
        return None
    found: dict[DeletionKind, int] = {}
    for one in said:
        name, _, number = one.partition("=")
        kind = next((kind for kind in DELETION_KINDS if kind == name), None)
        if kind is None or not (number.isascii() and number.isdecimal() and len(number) <= _DIGITS) or kind in found:
            message = f"expected {' or '.join(f'{kind}=N' for kind in DELETION_KINDS)}, once; found {one}"
            raise typer.BadParameter(message, param_hint=_OPTION)
        found[kind] = int(number)
    return found


def refuse_while_copied(topology: Topology, plan: Plan, declared: Mapping[str, str]) -> None:
    """Make sure that nobody copies into what is to be deleted.

    Args:
        topology: what is declared.
        plan: with its deletions.
        declared: by alias, the digest of a declaration that takes these topics no longer; its runs are in nobody's way.

    Raises:
        Refused: AB421, runs live that do.
        Unreachable: AB310, a target does not answer.
        EnvironmentFault: AB311, a status topic may not be read.
    """
    from reconciler.state.running import Copiers

    problems: list[Problem] = []
    for cluster in plan.clusters:
        steps = [step for step in cluster.steps if isinstance(step, DeleteTopic)]
        with Copiers(topology.clusters[cluster.alias], topology.name) as copiers:
            problems += copiers.still_copied(steps, declared.get(cluster.alias)).values()
    if problems:
        raise Refused(problems)


def confirm(topology: Topology, deleted: int) -> None:
    """Have somebody at the terminal type the topology's name.

    Raises:
        typer.Exit: something else was typed.
    """
    what = f"This deletes {deleted} topic{'' if deleted == 1 else 's'} with all records." if deleted else ""
    if ask(f"{what} Type the topology's name ({topology.name}) to go on:".strip()) != topology.name:
        stderr_console().print("Nothing was changed.")
        raise typer.Exit(1)
