"""A flow's process that is killed and begun anew, again and again, while it copies."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.spec import FlowSpec
from reconciler.state.status import StatusReader
from tests.support.clusters.kafka import settled
from tests.support.replicator.copying import SECONDS
from tests.support.replicator.owner import Owner

Log = tuple[str, int]
# For how many seconds a process lives on at most once it has written; every so many are killed before, or later.
_LIVES, _ANY = 0.8, 5


class Killed(threading.Thread):
    """Begins the process of a flow and kills it, as often as is asked for.

    Args:
        spec: the flow.
        copies: the partitions that it writes to.
        kills: how often.
        chance: what decides when.

    Attributes:
        kills: how often it was killed so far.
        copying: how often of that after it had written to the copies.
    """

    def __init__(self, spec: FlowSpec, copies: Sequence[Log], kills: int, chance: random.Random) -> None:
        super().__init__(name=f"killed-{spec.flow.name}", daemon=True)
        self.kills = self.copying = 0
        self._spec, self._copies, self._wanted, self._chance = spec, copies, kills, chance
        self._client = AdminClient(spec.target.librdkafka() | {"log_level": "2"})
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            while self.kills < self._wanted:
                self._begin_and_kill()
        except BaseException as error:
            self._error = error

    def wait(self) -> None:
        """Wait until the last one is killed."""
        self.join()
        if self._error is not None:
            raise self._error

    def _begin_and_kill(self) -> None:
        if self._chance.random() < 0.5:
            # Else it is the same run, whose task is tried again.
            self._spec = replace(self._spec, run=uuid.uuid4().hex)
        before = self._ends()
        with Owner(self._spec) as one:
            if self.kills % _ANY == _ANY - 1:
                time.sleep(self._chance.uniform(0.5, 3.0))
            else:
                # Within a first transaction, or behind one that counts.
                level = IsolationLevel(self.kills % 2)
                deadline, there = time.monotonic() + SECONDS, self._ends(level)
                while self._ends(level) == there:
                    assert one.process.poll() is None, "it has ended"
                    assert time.monotonic() < deadline, f"it wrote nothing; it says {self._said()}"
                    time.sleep(0.02)
                time.sleep(self._chance.uniform(0.0, _LIVES))
            assert one.process.poll() is None, "it has ended"
        self.kills += 1
        self.copying += self._ends() != before

    def _said(self) -> list[str]:
        reader = StatusReader(self._spec.target, self._spec.topology)
        try:
            return [str(status.to_json()) for status in reader.current() if status.run == self._spec.run]
        finally:
            reader.close()

    def _ends(self, level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED) -> list[int]:
        """Return where the copies end for their readers."""
        asked = {TopicPartition(*log): OffsetSpec.latest() for log in self._copies}

        def ask() -> list[int]:
            answers = self._client.list_offsets(asked, isolation_level=level, request_timeout=SECONDS)
            return sorted(int(answer.result(SECONDS).offset) for answer in answers.values())

        return settled(ask)


def bounds(cluster: Cluster, logs: Sequence[Log]) -> list[tuple[int, int]]:
    """Return where logs begin and end."""
    consumer = Consumer(cluster.librdkafka() | {"group.id": "unused", "log_level": "2"})
    try:
        return [settled(partial(consumer.get_watermark_offsets, TopicPartition(*log), timeout=5)) for log in logs]
    finally:
        consumer.close()
