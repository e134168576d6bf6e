"""What `plan`, `apply` and `destroy` share about deletions: the option that allows them, and what is asked before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from reconciler.cli.common import ask, stderr_console
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.removals import DELETION_KINDS, DeletionKind

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
            raise typer.BadParameter(message, param_hint=_OPTION)
        found[kind] = int(number)
    return found


def go_on() -> None:
    """Ask whether to go on.

    Raises:
        typer.Exit: the answer is not yes.
    """
    if (ask("Carry this out? [y/N]") or "").lower() not in {"y", "yes"}:
        stderr_console().print("Nothing was changed.")
        raise typer.Exit(1)


def confirm(topology: Topology, deleted: int) -> None:
    """Have the operator type the topology's name.

    Raises:
        typer.Exit: something else was typed.
    """
    what = f"This deletes {deleted} topic{'' if deleted == 1 else 's'} with all records." if deleted else ""
    if ask(f"{what} Type the topology's name ({topology.name}) to go on:".strip()) != topology.name:
        stderr_console().print("Nothing was changed.")
        raise typer.Exit(1)
