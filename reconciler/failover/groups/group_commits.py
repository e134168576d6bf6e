"""Commits group offsets for a failover or a failback, and records them, as groups may read on at once.

A command that died is run again; groups that it had moved may have read on by then, and must not go back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from shlex import quote

from reconciler.checkpoints.groups.groups import Groups
from reconciler.failover.groups import group_positions
from reconciler.model.base.errors import Problem
from reconciler.model.offsets.committed import Log, Move
from reconciler.model.recorded.failover import Carried
from reconciler.model.recorded.placed import Placed

Known = Mapping[str, Placed]
"""The committed offsets, by group."""

# With these errors nothing was committed: the group has members, or WRITE was refused.
_REFUSED = frozenset({"AB626", "AB313"})


def may_have_read_on(one: Carried, known: Known) -> bool:
    """Return whether a group may have read on since an earlier attempt committed its offset."""
    return one.group in known and known[one.group].may_have_read_on((one.to_topic, one.partition), one.before)


def commit(
    groups: Groups,
    found: tuple[Iterable[Carried], Iterable[Carried]],
    known: Known,
    put: Callable[[Known], None],
) -> tuple[int, dict[Move, Problem]]:
    """Commit group offsets; return their number, and the problems by move.

    Args:
        groups: the cluster that groups move to.
        found: positions that are committed exactly, and positions that only move forward.
        known: the offsets that are on record.
        put: records new ones.

    Raises:
        AnabranchError: the record cannot be written.
    """
    exact, forward = (list(some) for some in found)
    moves = group_positions.moves_of(exact)
    for group, some in group_positions.moves_of(forward, only_forward=True).items():
        moves.setdefault(group, []).extend(some)
    stays: dict[str, set[Log]] = {}
    for one in forward:
        if one.to_offset is not None:
            stays.setdefault(one.group, set()).add((one.to_topic, one.partition))
    begun = {
        group: known.get(group, Placed()).intending(moves.get(group, ()), stays.get(group, ()))
        for group in moves.keys() | stays.keys()
    }
    # Before the commit: a process may die right after it.
    put(_new(known, begun))
    wrong = groups.commit(moves)
    put(_new(begun, {group: _confirmed(begun[group], some, wrong) for group, some in moves.items()}))
    return sum(map(len, moves.values())) - len(wrong), wrong


def _confirmed(begun: Placed, moves: Iterable[Move], wrong: Mapping[Move, Problem]) -> Placed:
    done = [move.log for move in moves if move not in wrong]
    return begun.heard(done, [move.log for move in moves if move in wrong and wrong[move].code in _REFUSED])


def _new(before: Known, after: Known) -> Known:
    return {group: placed for group, placed in after.items() if before.get(group) != placed}


def refused(alias: str, move: Move, problem: Problem) -> Problem:
    """Return why an offset was not committed, with the offset: after the failback it is recorded nowhere else."""
    place = f", topic {move.topic}, partition {move.partition}"
    where = problem.where if problem.where.endswith(place) else problem.where + place
    message = f"{problem.message}: it was to go on at offset {move.after}"
    command = (
        f"anabranch offsets write FILE --cluster {alias} --group {quote(move.owner)} --topic {move.topic} "
        f"--partition {move.partition} --to {move.after}"
    )
    return Problem(problem.code, where, message, f"{problem.remedy}; the command is `{command}`")
