"""Reads once from an offset of a log, to compare and check; never on the data path.

`same_log`, `log_tail`, `fill`, `padding` and `position_recovery` use it.
"""

from __future__ import annotations

from reconciler.wire import ConnectionLost, FetchAnswer, FetchAsk, TopicInfo, Wire

_BYTES = 2**20
# Records written just before may not be replicated yet.
_WAIT_MS = 500


async def read(
    wire: Wire, topic: TopicInfo, partition: int, offset: int, *, committed: bool = False, wait_ms: int = _WAIT_MS
) -> FetchAnswer:
    """Return what one partition's leader has from `offset` on: about a megabyte, at least one whole batch if any.

    Raises:
        ConnectionLost: no answer, or an empty one, as brokers give over a quota.
        BrokerError: the broker refuses.
    """
    leader = topic.partitions[partition]
    ask = FetchAsk(topic.name, topic.topic_id, partition, offset, leader.epoch, _BYTES)
    answers = await wire.fetch(leader.node, [ask], wait_ms, _BYTES, committed=committed)
    if not answers:
        message = f"a quota holds back what is read of topic {topic.name}"
        raise ConnectionLost(message)
    (answer,) = answers
    answer.raise_error()
    return answer
