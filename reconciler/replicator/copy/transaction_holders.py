"""Finds the producers whose open transactions hold partitions at their last stable offset, where read_committed stops.

Callers that decide whether a log is copied completely report these producers. No transaction is ended here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.committed import Log
from reconciler.wire import BrokerError, ConnectionLost, Loop, ProducerState, Wire
from reconciler.wire.requests.transactions import names_of

_SECONDS = 10.0


@dataclass(frozen=True)
class TransactionHolder:
    """An open transaction.

    Attributes:
        producer: its producer; None where unknown.
        name: its transactional id; empty where unknown.
        why: why the producer is unknown.
    """

    producer: ProducerState | None
    name: str = ""
    why: str = ""

    def __str__(self) -> str:
        """Describe the transaction and its producer."""
        if self.producer is None:
            return f"an open transaction ({self.why})"
        one = self.producer
        name = f", transactional id {self.name}" if self.name else ""
        return f"an open transaction of producer {one.producer_id}, epoch {one.epoch}{name}"


def holders(cluster: Cluster, logs: Mapping[Log, int], seconds: float = _SECONDS) -> dict[Log, TransactionHolder]:
    """Return the transaction that holds each partition back; partitions whose transaction has ended are left out.

    Where the cluster does not answer, or refuses, the result holds that as the reason.

    Args:
        cluster: the partitions' cluster.
        logs: last stable offset by partition.
        seconds: time limit of a request.
    """
    if not logs:
        return {}
    found: dict[Log, TransactionHolder] = {}
    loop = Loop()
    wire = Wire(loop, cluster, "anabranch-holders", seconds)

    async def look() -> None:
        await wire.connect()
        await loop.together(partial(_look, wire, log, stable, found) for log, stable in logs.items())
        ids = {one.producer.producer_id for one in found.values() if one.producer is not None}
        names = await names_of(wire, ids) if ids else {}
        for log, one in found.items():
            if one.producer is not None:
                found[log] = TransactionHolder(one.producer, names.get(one.producer.producer_id, ""))

    try:
        loop.run(look)
    except ConnectionLost as error:
        return {log: found.get(log, TransactionHolder(None, why=f"its producer is unknown: {error}")) for log in logs}
    finally:
        wire.close()
        loop.close()
    return found


async def _look(wire: Wire, log: Log, stable: int, found: dict[Log, TransactionHolder]) -> None:
    topic, partition = log
    try:
        leader = (await wire.topics([topic]))[topic].leader_of(partition)
        producers = await wire.producers(leader.node, topic, partition)
    except BrokerError as error:
        found[log] = TransactionHolder(None, why=f"its producer is unknown: {error.name}")
        return
    open_ones = (one for one in producers if one.open_transaction and one.opened_at <= stable)
    if (first := min(open_ones, key=lambda one: one.opened_at, default=None)) is not None:
        found[log] = TransactionHolder(first)
