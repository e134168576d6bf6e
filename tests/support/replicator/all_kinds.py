"""Logs of all kinds with known truth: every record has a value of its own, so that its place is known on both sides."""

from __future__ import annotations

import itertools
import time
import uuid
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest
from confluent_kafka import Message, Producer

from reconciler.checkpoints.translation import history
from reconciler.checkpoints.translation.translate import Translator
from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.offsets.translation import Question, Translated, Way
from reconciler.model.tasks.spec import FlowSpec
from tests.support.clusters.kafka import create, declared
from tests.support.replicator.copying import REMOTE, log_end, spec_of
from tests.support.replicator.translated import committed

SECONDS = 300.0
EAGER = ClusterOptions(overrides={"log.cleaner.backoff.ms": "100", "log.cleaner.threads": "1"})
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
KEYS = 5
KINDS = ("plain", "transactions", "compacted", "mixed")


@dataclass
class Written:
    """What was written to one topic: the source offset of each record, by its value, which no other has."""

    topic: str
    offsets: dict[bytes, int] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def note(self, error: object, message: Message) -> None:
        assert error is None
        value, offset = message.value(), message.offset()
        assert value is not None
        assert offset is not None
        self.offsets[value] = offset

    def produce(self, producer: Producer, records: int, keys: int = 0) -> None:
        for _ in range(records):
            number = next(self.numbers)
            # Those that stay for ever stand in the midst of others.
            key = b"once-%d" % number if number % 3 == 1 else b"again-%d" % (number % keys) if keys else None
            producer.produce(self.topic, key=key, value=b"value-%d" % number, on_delivery=self.note)
        assert producer.flush(SECONDS) == 0


class World:
    """Both clusters, the topics, and what was written to them."""

    def __init__(self, source: EmbeddedCluster, target: EmbeddedCluster) -> None:
        self.source, self.target = source, target
        self.prefix = f"translate-{uuid.uuid4().hex[:8]}"
        alias = f"east{uuid.uuid4().hex[:8]}"
        self.spec = spec_of(declared(alias, source), declared("west", target), f"{self.prefix}-.*")
        self.spec = replace(self.spec, flow=replace(self.spec.flow, offsets="translated"))
        self.syncs = syncs_topic(alias)
        create(target, self.syncs, 1, {"cleanup.policy": "compact", "min.compaction.lag.ms": "604800000"})
        settings = source.client_config() | {"linger.ms": 20, "log_level": "2"}
        self.plain = Producer(settings)
        self.busy = Producer(settings | {"transactional.id": self.prefix})
        self.busy.init_transactions(SECONDS)
        self.written: dict[str, Written] = {}
        for kind in KINDS:
            topic = f"{self.prefix}-{kind}"
            create(source, topic, 1, COMPACTED if kind in ("compacted", "mixed") else None)
            create(target, f"{alias}.{topic}", 1, REMOTE)
            self.written[kind] = Written(topic)

    def remote(self, kind: str) -> str:
        return self.spec.flow.remote_topic(self.written[kind].topic)

    def write(self) -> None:
        """Write to all topics, with a key for those that are compacted."""
        for _ in range(3):
            self.written["plain"].produce(self.plain, 9)
            self.written["compacted"].produce(self.plain, 17, KEYS)
            for kind, keys in (("transactions", 0), ("mixed", KEYS)):
                for ends_well in (True, False, True):
                    self.busy.begin_transaction()
                    self.written[kind].produce(self.busy, 5, keys)
                    (self.busy.commit_transaction if ends_well else self.busy.abort_transaction)(SECONDS)
                    self.written[kind].produce(self.plain, 2, keys)

    def compact(self) -> None:
        """Wait until compaction has taken of what was written so far whatever is there again."""
        for kind in ("compacted", "mixed"):
            topic, deadline = self.written[kind].topic, time.monotonic() + SECONDS
            while sum((one.key() or b"").startswith(b"again") for one in committed(self.spec.source, topic)) > KEYS + 2:
                assert time.monotonic() < deadline, "nothing is compacted"
                # Only segments that are not written to any more are compacted.
                self.written[kind].produce(self.plain, 1, KEYS)
                time.sleep(0.2)

    def again(self) -> FlowSpec:
        return replace(self.spec, run=uuid.uuid4().hex)

    def truth(self, kind: str) -> list[tuple[int, int]]:
        """Return where each record that is in the copy stands on both sides."""
        offsets = self.written[kind].offsets
        return [(offsets[bytes(one.value() or b"")], one.offset() or 0) for one in self.copied(kind)]

    def copied(self, kind: str) -> list[Message]:
        return committed(self.spec.target, self.remote(kind))


def ask(spec: FlowSpec, topic: str, count: int, way: Way) -> list[Translated]:
    questions = [Question(topic, 0, offset, way) for offset in range(count)]
    with Translator(spec.source, spec.target, spec.flow, spec.topology) as translator:
        return translator.answers(questions)


def first_at(pairs: Sequence[tuple[int, int]], offset: int, side: int) -> int | None:
    at = bisect_left(pairs, offset, key=lambda pair: pair[side])
    return pairs[at][1 - side] if at < len(pairs) else None


def check(world: World, kind: str) -> None:
    """Assert that every offset of a topic is translated as reading both logs says."""
    spec, topic, pairs = world.spec, world.written[kind].topic, world.truth(kind)
    assert pairs == sorted(pairs)
    assert len(pairs) > 50
    source_end, target_end = log_end(spec.source, topic), log_end(spec.target, world.remote(kind))
    for offset, found in enumerate(ask(spec, topic, source_end + 1, "downstream")):
        expected = first_at(pairs, offset, 0)
        answer = Translated(target_end, "end") if expected is None else Translated(expected, "record")
        assert (offset, found) == (offset, answer)
    for offset, found in enumerate(ask(spec, topic, target_end + 1, "upstream")):
        expected = first_at(pairs, offset, 1)
        if expected is not None:
            assert (offset, found) == (offset, Translated(expected, "record"))
            continue
        assert found.how == "end"
        assert found.offset is not None
        assert pairs[-1][0] < found.offset <= source_end


def check_paired(
    translator: Translator, log: tuple[str, int], theirs: Sequence[Message], ours: Sequence[Message]
) -> None:
    """Assert that every offset is translated both ways, where both sides hold the same records in the same order.

    Args:
        translator: of the flow.
        log: the original's name, and the partition.
        theirs: what the source holds.
        ours: its copies at the target.
    """
    pairs = [(one.offset() or 0, other.offset() or 0) for one, other in zip(theirs, ours, strict=True)]
    assert pairs == sorted(pairs)
    ways: list[tuple[Way, int]] = [("downstream", 0), ("upstream", 1)]
    for way, side in ways:
        questions = [Question(*log, offset, way) for offset in range(pairs[-1][side] + 2)]
        for question, found in zip(questions, translator.answers(questions), strict=True):
            expected = first_at(pairs, question.offset, side)
            if expected is None:
                assert (question, found.how) == (question, "end")
            else:
                assert (question, found) == (question, Translated(expected, "record"))


def thinned(world: World, monkeypatch: pytest.MonkeyPatch, *, keep: Sequence[int], told: bool) -> None:
    """Let the translation see those offset syncs of each partition that are named, without what we add or with it."""
    name = f"{world.prefix}-syncs-{uuid.uuid4().hex[:8]}"
    create(world.target, name, 1)
    found: dict[bytes, list[Message]] = {}
    for message in committed(world.spec.target, world.syncs):
        found.setdefault(message.key() or b"", []).append(message)
    producer = Producer(world.target.client_config() | {"log_level": "2"})
    for messages in found.values():
        for number in sorted({range(len(messages))[at] for at in keep if -len(messages) <= at < len(messages)}):
            one = messages[number]
            producer.produce(name, key=one.key(), value=one.value(), headers=one.headers() if told else None)
    assert producer.flush(SECONDS) == 0
    monkeypatch.setattr(history, "syncs_topic", lambda source: name)
