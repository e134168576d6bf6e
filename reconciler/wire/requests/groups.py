"""Lookups about groups at their coordinators: which there are, of which kind, and their committed offsets.

Each function is one request and one answer, like the methods of `Wire`, or one for each group where brokers are old.
confluent-kafka lists consumers' groups alone, and what it returns as metadata of an offset may go on behind its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.wire.protocol.error_codes import ErrorCode
from reconciler.wire.protocol.library import ListGroupsRequest, OffsetFetchRequest
from reconciler.wire.protocol.values import BrokerError
from reconciler.wire.requests.client import Wire
from reconciler.wire.requests.commits import Log

_CLASSIC = "classic"
# The first version that names several groups, the newest before it, and the newest that names topics by name.
_MANY_GROUPS, _ONE_GROUP, _BY_NAME = 8, 7, 9


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """One group as its coordinator lists it.

    Attributes:
        name: of the group.
        protocol: the protocol of its members, such as `consumer`, `connect`, `share` or `streams`; empty where
            it never had one: offsets were committed without joining.
    """

    name: str
    protocol: str


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """What a group has committed for a partition.

    Attributes:
        offset: the next one to be read.
        metadata: committed with it.
        epoch: the leader epoch; -1 without one.
    """

    offset: int
    metadata: str
    epoch: int


Found = dict[Log, CommittedOffset] | BrokerError
"""What a group has committed, or the error of its coordinator."""


async def listed(wire: Wire, node: int) -> list[ListedGroup]:
    """Return the groups that a broker coordinates, as far as we may see them.

    Raises:
        ConnectionLost: no answer.
        BrokerError: refused, or not ready.
    """
    answer = await wire.ask(ListGroupsRequest(states_filter=[], types_filter=[]), node)
    if answer.error_code:
        raise BrokerError(answer.error_code)
    found = []
    for group in answer.groups:
        # Brokers from 3.8 on return the type of a group; before, a group of another kind had a protocol.
        kind = str(group.group_type or _CLASSIC).lower()
        found.append(ListedGroup(group.group_id, kind if kind != _CLASSIC else str(group.protocol_type or "")))
    return found


async def committed(wire: Wire, node: int, groups: Sequence[str]) -> dict[str, Found]:
    """Return all that groups of one coordinator have committed; what is in a transaction is not yet.

    Raises:
        ConnectionLost: no answer.
        BrokerError: the broker does not support the request.
    """
    asked: Any = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None) for group in groups]
    request = OffsetFetchRequest(groups=asked, min_version=_MANY_GROUPS, max_version=_BY_NAME)
    try:
        answer = await wire.ask(request, node)
    except BrokerError as error:
        if error.code != ErrorCode.UNSUPPORTED_VERSION:
            raise
        return {group: await _committed_of(wire, node, group) for group in groups}
    return {group.group_id: _found(group) for group in answer.groups}


async def _committed_of(wire: Wire, node: int, group: str) -> Found:
    request = OffsetFetchRequest(group_id=group, topics=None, min_version=2, max_version=_ONE_GROUP)
    return _found(await wire.ask(request, node))


def _found(answer: Any) -> Found:
    if answer.error_code:
        return BrokerError(answer.error_code)
    return {
        (topic.name, one.partition_index): CommittedOffset(
            int(one.committed_offset), one.metadata or "", int(one.committed_leader_epoch)
        )
        for topic in _each(answer.topics)
        for one in topic.partitions
        if one.committed_offset >= 0 and not one.error_code
    }


def _each(topics: Iterable[Any] | None) -> Iterable[Any]:
    return topics or ()
