"""Waits for leaders that are away for a moment, as in an election or while a broker begins anew."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from reconciler.replicator.transfer.pace import Quota
from reconciler.wire import BrokerError, ConnectionLost, ErrorCode, Loop, NotLetIn, TopicInfo, Wire

# How long leaders may be away, in seconds.
PATIENCE = 20.0
RETRY = 0.2
# The leader has moved, or is moving.
PASSING = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)

T = TypeVar("T")


def is_passing(error: Exception) -> bool:
    """Tell whether the same question may be answered soon."""
    if isinstance(error, BrokerError):
        return error.code in PASSING
    return isinstance(error, ConnectionLost) and not isinstance(error, NotLetIn)


async def patiently(
    loop: Loop, ask: Callable[[], Awaitable[T]], between: Callable[[], Awaitable[None]] | None = None
) -> T:
    """Return what is answered, asked again while that may help.

    Args:
        loop: to sleep on.
        ask: asks once.
        between: done before it is asked again: looks who leads by now.

    Raises:
        ConnectionLost: no answer, for a while.
        BrokerError: the broker refuses; what passes by itself, for a while.
    """
    began = time.monotonic()
    while True:
        try:
            return await ask()
        except (ConnectionLost, BrokerError) as error:
            if not is_passing(error) or time.monotonic() - began > PATIENCE:
                raise
        await loop.sleep(RETRY)
        if between is not None:
            await between()


async def room(loop: Loop, quota: Quota) -> None:
    """Wait until a quota lets more be read."""
    while pause := quota.pause(time.monotonic()):
        await loop.sleep(pause)


async def newest(wire: Wire, topic: TopicInfo) -> TopicInfo:
    """Return a topic as it is led by now; as it was, where nobody tells, or it is another one."""
    try:
        found = (await wire.topics([topic.name]))[topic.name]
    except ConnectionLost:
        return topic
    return found if not found.error and found.topic_id == topic.topic_id else topic
