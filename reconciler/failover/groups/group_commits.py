"""Commits positions of groups for a failover or a failback, and remembers them: who is put there may read on at once.

Whoever dies in the middle runs the command once more, and may take nobody back who has read on by then.
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
"""By group, what was committed."""

# After these the coordinator certainly has not taken it: the group has members, or something may not be written.
_REFUSED = frozenset({"AB626", "AB313"})


def may_have_read_on(one: Carried, known: Known) -> bool:
    """Tell whether a group was put there already, as far as it is known."""
    return one.group in known and known[one.group].may_have_read_on((one.to_topic, one.partition), one.before)


def commit(
    groups: Groups,
    found: tuple[Iterable[Carried], Iterable[Carried]],
    known: Known,
    put: Callable[[Known], None],
) -> tuple[int, dict[Move, Problem]]:
    """Commit positions; return how many, and what went wrong by move.

    Args:
        groups: the side that everybody goes to.
        found: positions that are committed as they are told, and those that are never taken back.
        known: what is remembered.
        put: remembers what is new.

    Raises:
        AnabranchError: it is not taken that they are committed.
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
    # Before the commit: who dies right behind it has put groups there.
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
    """Return why a position was not committed, and which it is: after the failback nobody else tells."""
    place = f", topic {move.topic}, partition {move.partition}"
    where = problem.where if problem.where.endswith(place) else problem.where + place
    message = f"{problem.message}: it was to go on at offset {move.after}"
    command = (
        f"anabranch offsets write FILE --cluster {alias} --group {quote(move.owner)} --topic {move.topic} "
        f"--partition {move.partition} --to {move.after}"
    )
    return Problem(problem.code, where, message, f"{problem.remedy}; the command is `{command}`")
