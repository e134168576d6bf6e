"""Plans moves of offsets and finds all objections at once, without writing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.checkpoints.groups.groups import Groups
from reconciler.checkpoints.groups.positions import TRANSLATED, Positions, with_notes
from reconciler.model.base.errors import Problem
from reconciler.model.offsets.committed import Asked, LogBounds, Move, MovedOffset


@dataclass(frozen=True)
class MoveTerms:
    """What a move may do.

    Attributes:
        clamp: whether offsets outside of the log become the nearest one in it; else they are refused.
        create: whether missing groups are made.
    """

    clamp: bool = False
    create: bool = False


@dataclass(frozen=True)
class PlannedMoves:
    """What would be written.

    Attributes:
        moves: in the order in which they were asked for.
        problems: the objections.
    """

    moves: tuple[Move, ...]
    problems: tuple[Problem, ...]


def plan_for_groups(groups: Groups, asked: Sequence[Asked], terms: MoveTerms) -> PlannedMoves:
    """Return what would be committed for groups of a cluster.

    Raises:
        EnvironmentFault: AB313, something is refused to our user.
        Unreachable: AB310, no answer.
    """
    kinds = groups.kinds()
    refused = _refused(groups, asked, kinds, terms)
    wrong, usable = _that_exist(groups, asked, groups.partitions)
    there = sorted({one.owner for one in asked} & kinds.keys() - refused.keys())
    before = {(one.group, one.topic, one.partition): one.offset for one in groups.committed(there)}
    moves, outside = _moves(groups, usable, terms, lambda one: before.get((one.owner, *one.log)))
    return PlannedMoves(tuple(moves), (*refused.values(), *wrong, *outside))


def _refused(groups: Groups, asked: Sequence[Asked], kinds: Mapping[str, str], terms: MoveTerms) -> dict[str, Problem]:
    """Return the objections to groups, once for each of them, where it is first named."""
    found: dict[str, Problem] = {}
    for group, first in {one.owner: one for one in reversed(asked)}.items():
        against = groups.against(group, kinds, terms.create)
        if against is not None:
            remedy = f"{against.remedy}; --create makes it" if against.code == "AB625" else against.remedy
            message = f"group {group} on cluster {groups.cluster.alias}: {against.message}"
            found[group] = Problem(against.code, first.where, message, remedy)
    return found


def plan_for_flow(positions: Positions, asked: Sequence[Asked], terms: MoveTerms) -> PlannedMoves:
    """Return what would be committed as positions of a flow.

    Raises:
        EnvironmentFault: AB313 or AB311, something is refused to our user.
        Unreachable: AB310, a cluster does not answer.
    """
    partitions = {topic: positions.partitions(topic) for topic in positions.copies}
    problems: list[Problem] = []
    usable: list[Asked] = []
    for one in asked:
        if one.partition >= partitions.get(one.topic, 0):
            problems.append(_not_of_flow(positions, one, partitions.get(one.topic, 0)))
        elif positions.copies[one.topic].offsets != TRANSLATED:
            problems.append(positions.identical(one.topic, one.where))
        else:
            usable.append(one)
    wrong, usable = _that_exist(positions.source, usable, positions.source.partitions)
    found = {(one.topic, one.partition): one for one in positions.read()} if usable else {}
    moves, outside = _moves(positions.source, usable, terms, lambda one: found[one.log].offset)
    if (running := positions.running()) is not None:
        problems.append(running)
    return PlannedMoves(tuple(with_notes(positions, moves, found)), tuple(problems + wrong + outside))


def write_for_groups(groups: Groups, moves: Sequence[Move]) -> MovedOffset:
    """Commit for groups; those that have members by now are left as they are."""
    by_group: dict[str, list[Move]] = {}
    for move in moves:
        by_group.setdefault(move.owner, []).append(move)
    return _moved(moves, groups.commit(by_group))


def write_for_flow(positions: Positions, moves: Sequence[Move]) -> MovedOffset:
    """Commit positions of a flow; while it runs nothing is written."""
    return _moved(moves, positions.write(moves))


def _moved(moves: Sequence[Move], wrong: Mapping[Move, Problem]) -> MovedOffset:
    done = tuple(move for move in moves if move not in wrong)
    return MovedOffset(done, tuple(dict.fromkeys(wrong.values())))


def _that_exist(
    groups: Groups, asked: Sequence[Asked], partitions: Mapping[str, int]
) -> tuple[list[Problem], list[Asked]]:
    problems: list[Problem] = []
    usable: list[Asked] = []
    for one in asked:
        count = partitions.get(one.topic, 0)
        if one.partition < count:
            usable.append(one)
            continue
        cluster, user = groups.cluster.alias, groups.cluster.user
        message = f"cluster {cluster} has no topic {one.topic}, or {user} is not allowed DESCRIBE on it"
        if count:
            message = f"topic {one.topic} on cluster {cluster} has no partition {one.partition}, but 0 to {count - 1}"
        problems.append(Problem("AB623", one.where, message, "correct it, or leave it out"))
    return problems, usable


def _not_of_flow(positions: Positions, one: Asked, partitions: int) -> Problem:
    flow = positions.flow.name
    message = f"flow {flow} has no copy of topic {one.topic}"
    if partitions:
        message = (
            f"flow {flow} has a copy of topic {one.topic} with partitions 0 to {partitions - 1}, not {one.partition}"
        )
    return Problem(
        "AB623", one.where, message, "name an original that the flow copies; `offsets read --flow` lists them"
    )


def _moves(
    groups: Groups, asked: Sequence[Asked], terms: MoveTerms, before: Callable[[Asked], int | None]
) -> tuple[list[Move], list[Problem]]:
    bounds = groups.bounds({one.log for one in asked})
    moves: list[Move] = []
    problems: list[Problem] = []
    for one in asked:
        if one.log not in bounds:
            message = (
                f"the log of topic {one.topic}, partition {one.partition} cannot be looked at: it has no leader now"
            )
            problems.append(Problem("AB630", one.where, message, "try again when its brokers are there"))
            continue
        log = bounds[one.log]
        if not log.holds(one.offset) and not terms.clamp:
            problems.append(_outside(one, log))
            continue
        after = log.clamped(one.offset)
        moves.append(Move(one.owner, *one.log, before(one), after, one.offset, one.metadata))
    return moves, problems


def _outside(one: Asked, log: LogBounds) -> Problem:
    side = "before the log begins" if one.offset < log.start else "behind the log's end"
    message = (
        f"offset {one.offset} of topic {one.topic}, partition {one.partition} is {side}: readers can stand from "
        f"{log.start} to {log.end}"
    )
    return Problem("AB624", one.where, message, f"correct it, or give --clamp to write {log.clamped(one.offset)}")
