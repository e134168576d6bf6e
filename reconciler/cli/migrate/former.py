"""Options of `adopt --from`: whose copies are taken over, and where it noted how far it had come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from reconciler.cli.common import say
from reconciler.operate.taking_over import FormerReplicator, Replicator, TakenPosition

From = Annotated[
    Replicator | None,
    typer.Option(
        "--from",
        help="Go on where MirrorMaker 2 (mm2), MirrorMaker 1 (mm1) or Mirus has ended, at exactly the next record.",
    ),
]
OffsetsTopic = Annotated[
    str | None,
    typer.Option(
        "--offsets-topic",
        metavar="TOPIC",
        help="Of Kafka Connect, at the target; default: a dedicated MirrorMaker 2's. Mirus' may be at the source.",
    ),
]
ConnectorName = Annotated[
    str | None, typer.Option("--connector", metavar="NAME", help="Whose positions, where several have some.")
]
MirrorGroup = Annotated[
    str | None, typer.Option("--group", metavar="NAME", help="MirrorMaker 1's group at the source.")
]


def former_replicator(
    kind: Replicator | None, topic: str | None, connector: str | None, group: str | None
) -> FormerReplicator | None:
    """Return what `--from` and the options beside it name.

    Raises:
        typer.BadParameter: one goes without it, or is missing.
    """
    of_connect: tuple[Replicator, ...] = ("mm2", "mirus")
    for option, value, of in (
        ("--offsets-topic", topic, of_connect),
        ("--connector", connector, of_connect),
        ("--group", group, ("mm1",)),
    ):
        if value is not None and kind not in of:
            message = f"it goes with --from {' or '.join(of)}"
            raise typer.BadParameter(message, param_hint=option)
    if kind == "mirus" and topic is None:
        message = "it names the offset.storage.topic of Mirus' workers, and is needed beside --from mirus"
        raise typer.BadParameter(message, param_hint="--offsets-topic")
    if kind == "mm1" and group is None:
        message = "it names the group.id of MirrorMaker 1, and is needed beside --from mm1"
        raise typer.BadParameter(message, param_hint="--group")
    return None if kind is None else FormerReplicator(kind, topic, connector, group)


def show_taken(taken: Sequence[TakenPosition]) -> None:
    """Print where copies go on."""
    for one in taken:
        held = one.offset - one.noted
        more = f", as the copy holds what was not noted of {held} further offsets" if held else ""
        say(f"{one.flow}: {one.log[0]}/{one.log[1]} goes on at offset {one.offset}{more}", None)
