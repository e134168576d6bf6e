"""Waits for the ends of copies to become final after their flow has ended, so that they can be cut.

A killed task may leave a transaction open or just ended: its marker, and the offset committed in it, arrive later. The
last records may be at a partition's leader alone: consumers get them once all replicas in sync have them.
"""

from __future__ import annotations

from collections.abc import Collection

from reconciler.failover.logs.batching import in_portions
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import lease_group, transactional_prefix
from reconciler.model.offsets.committed import Log
from reconciler.state.confluent.faults import refused
from reconciler.wire import (
    GROUP,
    LATEST,
    BrokerError,
    ConnectionLost,
    ErrorCode,
    Loop,
    Membership,
    Wire,
    error_name,
)
from reconciler.wire.requests import commits
from reconciler.wire.requests.transactions import settle, unfinished

_SECONDS = 10.0


class Quiesce:
    """Reads what is not final at the target of one flow, and aborts transactions that its dead tasks left open.

    Args:
        cluster: the flow's target; no task copies the flow any more.
        topology: name of the topology.
        flow: name of the flow.
    """

    def __init__(self, cluster: Cluster, topology: str, flow: str) -> None:
        self._cluster = cluster
        self._group = lease_group(topology, flow)
        self._prefix = transactional_prefix(topology, flow)
        self._loop = Loop()
        self._wire = Wire(self._loop, cluster, "anabranch-failover", _SECONDS)
        self._left: list[str] = []

    def left(self, logs: Collection[Log], translated: Collection[Log]) -> list[str]:
        """Return in words what is not final yet; empty if positions and ends of copies are.

        Args:
            logs: partitions of copies.
            translated: those among them whose positions are in the flow's group.

        Raises:
            EnvironmentFault: AB313, DESCRIBE is refused.
        """
        self._left = []

        async def look() -> None:
            await self._wire.connect()
            await self._end_transactions()
            await self._positions(translated)
            await in_portions(self._loop, sorted(logs), self._end)

        try:
            self._loop.run(look)
        except ConnectionLost as error:
            self._left.append(f"no answer: {error}")
        return self._left

    async def _end_transactions(self) -> None:
        """Abort open transactions; if that is refused, they are reported until they have timed out."""
        for name in await unfinished(self._wire, self._prefix):
            try:
                await settle(self._wire, name)
            except BrokerError as error:
                self._left.append(f"the transaction of {name} is not ended yet ({error_name(error.code)})")

    async def _positions(self, logs: Collection[Log]) -> None:
        if not logs:
            return
        try:
            node = await self._wire.coordinator(self._group, GROUP)
            await commits.positions(self._wire, Membership(node, self._group), logs)
        except BrokerError as error:
            if error.code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
                raise EnvironmentFault(refused(self._cluster, "DESCRIBE", f"group {self._group}")) from None
            is_open = error.code == ErrorCode.UNSTABLE_OFFSET_COMMIT
            why = "a transaction that holds some is not ended yet" if is_open else error_name(error.code)
            self._left.append(f"positions in group {self._group}: {why}")

    async def _end(self, log: Log) -> None:
        """Check that all replicas in sync have all records of a partition's leader."""
        topic, partition = log
        wire, name = self._wire, f"{topic}/{partition}"
        try:
            leader = (await wire.topics([topic]))[topic].leader_of(partition)
            end = await wire.log_end(leader.node, topic, partition, leader.epoch)
            # Read after the log end, so that it cannot be older.
            high = await wire.offset(leader.node, topic, partition, LATEST)
        except BrokerError as error:
            if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                raise EnvironmentFault(refused(self._cluster, "DESCRIBE", f"topic {topic}")) from None
            self._left.append(f"{name}: {error_name(error.code)}")
            return
        if end is None or high < end:
            more = "" if end is None else f" of {end}"
            self._left.append(f"{name}: its replicas have offsets up to {high}{more} alone")

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()
        self._loop.close()
