"""Logs of all kinds that go on growing, with several partitions each, and where each record stands on both sides."""

from __future__ import annotations

import random
import threading
import time
from itertools import islice, pairwise

from confluent_kafka import Producer

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.spec import FlowSpec
from tests.support.clusters.kafka import create
from tests.support.replicator.all_kinds import COMPACTED, KEYS, KINDS, SECONDS, Written
from tests.support.replicator.translated import committed

PARTITIONS = 3
COMPACTED_KINDS = ("compacted", "mixed")
Pair = tuple[int, int]
# Of logs that are compacted and nothing else nobody deletes records.
_CONFIGS = COMPACTED | {"cleanup.policy": "compact,delete", "retention.ms": "-1", "segment.ms": "500"}


class Growing(threading.Thread):
    """A topic of each kind, written to until told to finish.

    Args:
        source: where they are.
        prefix: of their names.
        chance: what decides how many records come at once, and which transactions are aborted.
        pause: seconds between two turns.
    """

    def __init__(self, source: EmbeddedCluster, prefix: str, chance: random.Random, pause: float) -> None:
        super().__init__(name=f"growing-{prefix}", daemon=True)
        settings = source.client_config() | {"linger.ms": 5, "log_level": "2"}
        self._plain = Producer(settings | {"enable.idempotence": True})
        self._busy = Producer(settings | {"transactional.id": prefix})
        self._busy.init_transactions(SECONDS)
        self._chance, self._pause = chance, pause
        self._over = threading.Event()
        self._error: BaseException | None = None
        self._aborted: dict[str, set[bytes]] = {kind: set() for kind in KINDS}
        self.written = {kind: Written(f"{prefix}-{kind}") for kind in KINDS}
        for kind, one in self.written.items():
            create(source, one.topic, PARTITIONS, _CONFIGS if kind in COMPACTED_KINDS else None)

    def run(self) -> None:
        try:
            while not self._over.wait(self._pause):
                self.write()
        except BaseException as error:
            self._error = error

    def finish(self) -> None:
        """End after the turn under way."""
        self._over.set()
        self.join(SECONDS)
        assert not self.is_alive()
        if self._error is not None:
            raise self._error

    def abort_last(self) -> None:
        """Let transactions be the last that is there, and be aborted."""
        for kind in ("transactions", "mixed"):
            self._transact(kind, ends_well=False)

    def write(self) -> None:
        """Write to all topics once, with keys to those that are compacted."""
        for kind in ("plain", "compacted"):
            self.written[kind].produce(self._plain, self._chance.randrange(1, 40), self._keys(kind))
        for kind in ("transactions", "mixed"):
            for _ in range(self._chance.randrange(1, 4)):
                self._transact(kind, ends_well=self._chance.random() < 0.7)
                if self._chance.random() < 0.5:
                    self.written[kind].produce(self._plain, self._chance.randrange(1, 4), self._keys(kind))

    def compact(self, source: Cluster) -> None:
        """Wait until compaction has taken nearly all that was written so far and is there again."""
        for kind in COMPACTED_KINDS:
            one, deadline, most = self.written[kind], time.monotonic() + SECONDS, 2 * KEYS * PARTITIONS
            while sum(_comes_again(source, one.topic, number) for number in range(PARTITIONS)) > most:
                assert time.monotonic() < deadline, "nothing is compacted"
                # Only segments that are not written to any more are compacted.
                one.produce(self._plain, KEYS, KEYS)
                time.sleep(0.2)

    def pairs(self, spec: FlowSpec, kind: str, partition: int) -> list[Pair]:
        """Return where each record that is in a flow's copy stands on both sides, read from both logs.

        Asserts that each is there once, in order, and that the copy has all that the source has.
        """
        one = self.written[kind]
        left = {bytes(message.value() or b""): message for message in committed(spec.source, one.topic, partition)}
        assert {value: one.offsets[value] for value in left} == {value: m.offset() for value, m in left.items()}
        copies = committed(spec.target, spec.flow.remote_topic(one.topic), partition)
        values = [bytes(message.value() or b"") for message in copies]
        found = [(one.offsets[value], message.offset() or 0) for value, message in zip(values, copies, strict=True)]
        assert all(before[0] < after[0] for before, after in pairwise(found))
        missing = left.keys() - set(values)
        assert not missing, (kind, partition, sorted(one.offsets[value] for value in missing)[:20])
        assert not self._aborted[kind] & set(values)
        return found

    def left(self, source: Cluster, kind: str, partition: int) -> set[int]:
        """Return the offsets of the records that the source still has."""
        return {message.offset() or 0 for message in committed(source, self.written[kind].topic, partition)}

    def _transact(self, kind: str, *, ends_well: bool) -> None:
        one = self.written[kind]
        before = len(one.offsets)
        self._busy.begin_transaction()
        one.produce(self._busy, self._chance.randrange(1, 12), self._keys(kind))
        if ends_well:
            self._busy.commit_transaction(SECONDS)
        else:
            self._busy.abort_transaction(SECONDS)
            self._aborted[kind].update(islice(one.offsets, before, None))

    @staticmethod
    def _keys(kind: str) -> int:
        return KEYS if kind in COMPACTED_KINDS else 0


def _comes_again(source: Cluster, topic: str, partition: int) -> int:
    return sum((one.key() or b"").startswith(b"again") for one in committed(source, topic, partition))
