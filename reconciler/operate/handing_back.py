"""Hands a flow back to MirrorMaker 2: it stands still, and its positions are noted where MirrorMaker 2 reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from reconciler.convert.plugins import SOURCE
from reconciler.model.base.errors import Problem, Refused
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import connect_offsets_topic
from reconciler.model.offsets.committed import Log
from reconciler.operate.flows.steering import steered

if TYPE_CHECKING:
    from reconciler.checkpoints.groups.positions import Positions

Heir = Literal["mm2"]
"""What goes on: MirrorMaker 2."""

_NAMED_ALIKE = ("default", "identity")


@dataclass(frozen=True)
class HandedPosition:
    """Where one partition goes on.

    Attributes:
        log: the original.
        remote: the copy.
        offset: of the next record; None where nothing was copied.
    """

    log: Log
    remote: str
    offset: int | None


def hand_back(
    topology: Topology, flow: Flow, topic: str | None = None, connector: str | None = None
) -> list[HandedPosition]:
    """Pause a flow for good, and note its positions for MirrorMaker 2; return them.

    What is in flight is finished before. Done again, it notes the same.

    Args:
        topology: what is declared.
        flow: one of its flows.
        topic: in which Kafka Connect keeps offsets at the target; by default that of a dedicated MirrorMaker 2.
        connector: under which name; by default that of a dedicated one.

    Raises:
        Refused: AB418, its copies are named otherwise than MirrorMaker 2 names them, it is failed over, its tasks do
            not confirm the pause, or a position is not known.
        AnabranchError: a cluster does not answer, or refuses.
    """
    from reconciler.checkpoints.groups.positions import Positions
    from reconciler.checkpoints.translation.noting import note_for_connect
    from reconciler.state import control

    where = f"flow {flow.name}"
    if flow.policy.kind not in _NAMED_ALIKE:
        message = f"its copies are named by the policy {flow.policy.kind}, which MirrorMaker 2 does not have"
        raise Refused(Problem("AB418", where, message, "let MirrorMaker 2 copy into topics of its own"))
    known = Positions(topology, flow)
    if known.cut is not None:
        message = "it is failed over: others write to its copies"
        raise Refused(Problem("AB418", where, message, "fail it back before: anabranch failback"))
    # Before anything stands still, and again once it does: by then more was copied.
    _check(known, _positions(known), where)
    became = steered(topology, flow.name, (), control.pause) if flow.enabled else []
    if unconfirmed := sum(one.unconfirmed for one in became):
        message = f"{unconfirmed} of its tasks did not confirm that they stand still"
        raise Refused(Problem("AB418", where, message, "run it again, or stop replicate before"))
    known = Positions(topology, flow)
    positions = _positions(known)
    _check(known, positions, where)
    at = topic or connect_offsets_topic(flow.source)
    # A dedicated MirrorMaker 2 calls its connectors after their classes.
    noted = {one.log: one.offset for one in positions}
    note_for_connect(known.target.cluster, at, connector or SOURCE, flow.source, noted)
    return positions


def _positions(known: Positions) -> list[HandedPosition]:
    return [HandedPosition((one.topic, one.partition), one.remote, one.offset) for one in known.read()]


def _check(known: Positions, positions: Sequence[HandedPosition], where: str) -> None:
    """Check that MirrorMaker 2 can go on everywhere.

    Raises:
        Refused: AB418, there is nothing to go on with, or a copy holds records and its position is not known.
    """
    if not positions:
        message = "nothing of it was ever applied: it has no copies"
        raise Refused(Problem("AB418", where, message, "there is nothing to hand back"))
    unknown = [(one.remote, one.log[1]) for one in positions if one.offset is None]
    bounds = known.target.bounds(unknown)
    message = "holds records, and its position is not known: MirrorMaker 2 would copy all of them again"
    remedy = "write it with `anabranch offsets write`, and run this again"
    problems = [
        Problem("AB418", f"{where}, {log[0]}/{log[1]}", message, remedy)
        for log in unknown
        if log not in bounds or bounds[log].end > bounds[log].start
    ]
    if problems:
        raise Refused(problems)
