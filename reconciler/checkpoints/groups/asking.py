"""Reads and commits offsets of many groups, side by side, at their coordinators.

Each call has connections of its own. Coordinators that are moving, or still loading, are retried for a while.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.committed import Log
from reconciler.wire import (
    COORDINATOR_NOT_READY,
    GROUP,
    BrokerError,
    ConnectionLost,
    Loop,
    Membership,
    Wire,
    when_ready,
)
from reconciler.wire.requests import commits, groups
from reconciler.wire.requests.commits import CommittedPosition
from reconciler.wire.requests.groups import Found

Item = TypeVar("Item")
GroupCommits = Mapping[str, Sequence[Mapping[Log, CommittedPosition]]]
"""By group, what is to be committed, in portions that a coordinator takes at once."""

_SECONDS = 30.0
_PAUSE = 0.1
_GROUPS_AT_ONCE = 100
_COMMITS_AT_ONCE = 64


class _Connection(NamedTuple):
    """A connection to a cluster, on a loop of its own."""

    loop: Loop
    wire: Wire


class OffsetRefusal(Exception):
    """A coordinator refused part of a commit.

    Attributes:
        codes: Kafka's error codes, by partition.
        done: what was committed for the group all the same.
    """

    def __init__(self, codes: Mapping[Log, int], done: Collection[Log]) -> None:
        super().__init__(str(codes))
        self.codes = codes
        self.done = frozenset(done)

    @property
    def first(self) -> int:
        """Why nothing more was tried for the group."""
        return next(iter(self.codes.values()))


def kinds(cluster: Cluster, nodes: Collection[int]) -> dict[str, str]:
    """Return all visible groups with the protocol of their members, with one request to each broker.

    Args:
        cluster: which one.
        nodes: ids of its brokers.

    Raises:
        ConnectionLost: a broker does not answer.
        BrokerError: one refuses, or is not ready.
    """
    found: dict[str, str] = {}

    async def ask(line: _Connection) -> None:
        async def ask_one(node: int) -> None:
            listed = await when_ready(
                line.loop, partial(groups.listed, line.wire, node), COORDINATOR_NOT_READY, _SECONDS
            )
            found.update({one.name: one.protocol for one in listed})

        await _side_by_side(line, sorted(nodes), ask_one)

    _run(cluster, ask)
    return found


def committed(cluster: Cluster, names: Sequence[str]) -> dict[str, Found]:
    """Return what groups have committed, or the errors of their coordinators; a hundred groups in one request.

    Raises:
        ConnectionLost: no answer.
        BrokerError: the cluster does not know such requests.
    """
    found: dict[str, Found] = {}

    async def ask(line: _Connection) -> None:
        async def ask_one(question: tuple[int, Sequence[str]]) -> None:
            found.update(await groups.committed(line.wire, *question))

        deadline = time.monotonic() + _SECONDS
        missing = list(names)
        while missing:
            nodes = await _coordinators(line, missing, found)
            await _side_by_side(line, list(_by_node(nodes)), ask_one)
            missing = [name for name in missing if _is_not_yet(found.get(name))]
            if time.monotonic() > deadline:
                return
            await line.loop.sleep(_PAUSE if missing else 0.0)

    _run(cluster, ask)
    return found


def commit(cluster: Cluster, what: GroupCommits) -> dict[str, Exception]:
    """Commit offsets without membership, with generation -1 and leader epoch -1; return the errors by group.

    A group's portions follow each other, and none follows one that was refused.

    Returns:
        `OffsetRefusal` with codes by partition, or what was raised; then it is unknown what was committed.
    """
    wrong: dict[str, Exception] = {}

    async def write(line: _Connection) -> None:
        async def write_one(group: str) -> None:
            done: list[Log] = []
            try:
                for portion in what[group]:
                    send = partial(_commit, line.wire, group, portion)
                    codes = await when_ready(line.loop, send, COORDINATOR_NOT_READY, _SECONDS)
                    done += portion.keys() - codes.keys()
                    if codes:
                        raise OffsetRefusal(codes, done)
            except (ConnectionLost, BrokerError, OffsetRefusal) as error:
                wrong[group] = error

        await _side_by_side(line, list(what), write_one, _COMMITS_AT_ONCE)

    try:
        _run(cluster, write)
    except ConnectionLost as error:
        return dict.fromkeys(what, error)
    return wrong


async def _commit(wire: Wire, group: str, portion: Mapping[Log, CommittedPosition]) -> dict[Log, int]:
    node = await wire.coordinator(group, GROUP)
    codes = await commits.commit(wire, Membership(node, group), portion)
    for code in codes.values():
        if code in COORDINATOR_NOT_READY:
            # The coordinator returns it for all of them.
            raise BrokerError(code)
    return codes


async def _coordinators(line: _Connection, names: Sequence[str], found: dict[str, Found]) -> dict[str, int]:
    """Return the coordinators of groups; a group without one gets its error in `found`. Lookups share a request."""
    nodes: dict[str, int] = {}

    async def ask(name: str) -> None:
        try:
            nodes[name] = await line.wire.coordinator(name, GROUP)
        except BrokerError as error:
            found[name] = error

    await _side_by_side(line, names, ask, len(names))
    return nodes


def _by_node(nodes: Mapping[str, int]) -> Iterator[tuple[int, Sequence[str]]]:
    for node in sorted(set(nodes.values())):
        names = [name for name, its in nodes.items() if its == node]
        for first in range(0, len(names), _GROUPS_AT_ONCE):
            yield node, names[first : first + _GROUPS_AT_ONCE]


def _is_not_yet(answer: Found | None) -> bool:
    return isinstance(answer, BrokerError) and answer.code in COORDINATOR_NOT_READY


# --- how it is run ---------------------------------------------------------------------------------------------------


def _run(cluster: Cluster, work: Callable[[_Connection], Awaitable[None]]) -> None:
    loop = Loop()
    line = _Connection(loop, Wire(loop, cluster, "anabranch-offsets", _SECONDS))

    async def connected() -> None:
        await line.wire.connect()
        await work(line)

    try:
        loop.run(connected)
    finally:
        line.wire.close()
        loop.close()


async def _side_by_side(
    line: _Connection, items: Sequence[Item], work: Callable[[Item], Awaitable[None]], at_once: int = 16
) -> None:
    """Do some work for each item, for several at a time; raise what any of them raised."""
    waiting, bell = list(reversed(items)), line.loop.bell()

    async def some() -> None:
        try:
            while waiting:
                await work(waiting.pop())
        finally:
            bell.ring()

    jobs = [line.loop.spawn(some) for _ in range(min(at_once, len(items)))]
    while not all(job.is_done for job in jobs):
        await bell.wait(_PAUSE)
    for job in jobs:
        job.raise_failure()
