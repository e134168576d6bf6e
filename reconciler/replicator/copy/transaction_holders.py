"""Finds whose open transaction holds records of partitions back: consumers of committed records stop in front of it.

Who decides that a log has nothing more must look behind its last stable offset, and name the producer that keeps it
there. Nothing is ended here.
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
        producer: whose it is; None where it is not known.
        name: its transactional id; empty where it is not known.
        why: why it is not known whose it is.
    """

    producer: ProducerState | None
    name: str = ""
    why: str = ""

    def __str__(self) -> str:
        """Say whose transaction it is."""
        if self.producer is None:
            return f"an open transaction ({self.why})"
        one = self.producer
        name = f", transactional id {self.name}" if self.name else ""
        return f"an open transaction of producer {one.producer_id}, epoch {one.epoch}{name}"


def holders(cluster: Cluster, logs: Mapping[Log, int], seconds: float = _SECONDS) -> dict[Log, TransactionHolder]:
    """Return whose transaction holds each partition back; those whose transaction has ended meanwhile are left out.

    A cluster that does not answer, or refuses, is told as the reason why it is not known.

    Args:
        cluster: where they are.
        logs: by partition, its last stable offset.
        seconds: how long the cluster may be silent.
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
        return {
            log: found.get(log, TransactionHolder(None, why=f"the brokers do not say whose: {error}")) for log in logs
        }
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
        found[log] = TransactionHolder(None, why=f"the broker does not say whose: {error.name}")
        return
    open_ones = (one for one in producers if one.open_transaction and one.opened_at <= stable)
    if (first := min(open_ones, key=lambda one: one.opened_at, default=None)) is not None:
        found[log] = TransactionHolder(first)
