"""Retries requests while leaders are away, as in an election or during a broker restart."""

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
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)

T = TypeVar("T")


def is_passing(error: Exception) -> bool:
    """Return whether the same request may succeed soon."""
    if isinstance(error, BrokerError):
        return error.code in PASSING
    return isinstance(error, ConnectionLost) and not isinstance(error, NotLetIn)


async def patiently(
    loop: Loop, ask: Callable[[], Awaitable[T]], between: Callable[[], Awaitable[None]] | None = None
) -> T:
    """Return the answer to a request, repeated while that may help.

    Args:
        loop: to sleep on.
        ask: sends the request.
        between: called before each repetition: reads the leader again.

    Raises:
        ConnectionLost: no answer for `PATIENCE` seconds.
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
    """Wait until a quota allows more to be read."""
    while pause := quota.pause(time.monotonic()):
        await loop.sleep(pause)


async def newest(wire: Wire, topic: TopicInfo) -> TopicInfo:
    """Return a topic with its current leaders; unchanged if there is no answer, or its id is another one."""
    try:
        found = (await wire.topics([topic.name]))[topic.name]
    except ConnectionLost:
        return topic
    return found if not found.error and found.topic_id == topic.topic_id else topic
