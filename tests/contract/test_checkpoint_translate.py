"""Every offset of every kind of log, both ways, against what reading both logs record by record says."""

from __future__ import annotations

import itertools
import time
import uuid
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest
from confluent_kafka import Message, Producer

from reconciler.checkpoints import history
from reconciler.checkpoints.translate import Question, Translated, Translator
from reconciler.embedded import ClusterOptions, EmbeddedCluster, running
from reconciler.model.names import syncs_topic
from reconciler.model.spec import FlowSpec
from reconciler.replicator import committing
from reconciler.replicator.wire import ConnectionLost, commits
from tests.contract.kafka import create, declared, delete_records, names
from tests.support.copying import REMOTE, Running, all_running, copy, log_end, spec_of
from tests.support.translated import committed

SECONDS = 60
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
        for _ in range(4):
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


@pytest.fixture(scope="module")
def world(target_cluster: EmbeddedCluster) -> Iterator[World]:
    """All kinds of logs, copied in small transactions, some of them aborted, by several runs."""
    with running(EmbeddedCluster("eager", EAGER)) as (source,), pytest.MonkeyPatch.context() as patch:
        world = World(source, target_cluster)
        world.write()
        world.compact()
        assert all_running(copy(world.again()).status.partitions)
        whole, calls = commits.end, itertools.count()

        async def lost(wire: object, transactor: object, committed: bool) -> None:
            if next(calls) % 3 == 1:
                message = "cut off"
                raise ConnectionLost(message)
            await whole(wire, transactor, committed)  # type: ignore[arg-type]

        patch.setattr(commits, "end", lost)
        spec = world.again()
        spec = replace(spec, flow=replace(spec.flow, commit_interval=0.05))
        with Running(spec) as copying:
            for _ in range(3):
                world.write()
                copying.settled_again()
        assert next(calls) > 4
        patch.setattr(commits, "end", whole)
        world.write()
        assert all_running(copy(world.again()).status.partitions)
        world.compact()
        assert all_running(copy(world.again()).status.partitions)
        yield world


def ask(spec: FlowSpec, topic: str, count: int, way: str) -> list[Translated]:
    questions = [Question(topic, 0, offset, way) for offset in range(count)]  # type: ignore[arg-type]
    with Translator(spec.source, spec.target, spec.flow) as translator:
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


@pytest.mark.parametrize("kind", KINDS)
def test_every_offset_is_translated_as_reading_both_logs_says(world: World, kind: str) -> None:
    check(world, kind)


def test_holes_inside_batches_were_copied_and_compaction_went_on(world: World) -> None:
    """Or the others would show less than they say."""
    pairs = world.truth("compacted")
    distances = {target - source for source, target in pairs}
    assert len(distances) > 10
    left = committed(world.spec.source, world.written["compacted"].topic)
    assert len(left) < len(pairs)


def test_what_is_past_the_end_is_the_end_and_says_so(world: World) -> None:
    spec, topic = world.spec, world.written["transactions"].topic
    source_end, target_end = log_end(spec.source, topic), log_end(spec.target, world.remote("transactions"))
    with Translator(spec.source, spec.target, spec.flow) as translator:
        found = translator.downstream(topic, 0, source_end + 1_000)
        assert (found.offset, found.how) == (target_end, "ahead")
        assert "1,000 past" in found.why
        back = translator.upstream(topic, 0, target_end + 1_000)
        assert back.how == "ahead"
        assert back.offset is not None
        assert back.offset <= source_end
        assert translator.downstream(f"{topic}-other", 0, 0).how == "unknown"


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


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("keep", [(-1,), (0, 4, -1)])
@pytest.mark.parametrize("kind", ["plain", "transactions"])
def test_where_syncs_are_gone_counting_is_as_exact(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: str, keep: Sequence[int], *, told: bool
) -> None:
    thinned(world, monkeypatch, keep=keep, told=told)
    check(world, kind)


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("kind", ["compacted", "mixed"])
def test_where_syncs_and_records_are_gone_nothing_that_is_left_is_skipped_or_read_again(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: str, *, told: bool
) -> None:
    thinned(world, monkeypatch, keep=(-1,), told=told)
    spec, topic, pairs = world.spec, world.written[kind].topic, world.truth(kind)
    left = {message.offset() for message in committed(spec.source, topic)}
    source_end = log_end(spec.source, topic)
    for offset, found in enumerate(ask(spec, topic, source_end + 1, "downstream")):
        assert found.offset is not None
        read = {source for source, target in pairs if target >= found.offset}
        assert not {source for source in read if source < offset}
        assert not {source for source, _ in pairs if source >= offset and source in left} - read
    for offset, found in enumerate(ask(spec, topic, log_end(spec.target, world.remote(kind)), "upstream")):
        assert found.offset is not None
        unread = {source for source, target in pairs if target >= offset and source in left}
        assert {one for one in left if one is not None and one >= found.offset and one <= pairs[-1][0]} == unread


def test_what_is_too_much_to_be_read_is_not_guessed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    thinned(world, monkeypatch, keep=(-1,), told=True)
    spec, topic = world.spec, world.written["plain"].topic
    with Translator(spec.source, spec.target, spec.flow, most=10) as translator:
        found = translator.downstream(topic, 0, 0)
    assert (found.offset, found.how) == (None, "unknown")
    assert "more than 10 records" in found.why


def test_what_is_copied_meanwhile_is_seen_at_the_next_look_and_what_is_deleted_is_reported(world: World) -> None:
    """The last test of the file, as it changes what is there."""
    spec, topic, remote = world.spec, world.written["plain"].topic, world.remote("plain")
    with Translator(spec.source, spec.target, spec.flow) as translator:
        end = log_end(spec.source, topic)
        at_end = translator.downstream(topic, 0, end)
        assert at_end == Translated(log_end(spec.target, remote), "end")
        world.written["plain"].produce(world.plain, 7)
        assert translator.downstream(topic, 0, end) == at_end
        translator.refresh()
        assert translator.downstream(topic, 0, end) == at_end
        ahead = translator.downstream(topic, 0, end + 3)
        assert (ahead.offset, ahead.how) == (at_end.offset, "ahead")
        assert all_running(copy(world.again()).status.partitions)
        translator.refresh()
        pairs = world.truth("plain")
        # Nothing between the end of then and the first record that came since is a record.
        (following,) = [target for source, target in pairs if source == end]
        assert at_end.offset is not None
        assert not [target for _, target in pairs if at_end.offset <= target < following]
        assert translator.downstream(topic, 0, end) == Translated(following, "record")
        delete_records(world.target, remote, pairs[10][1])
        delete_records(world.source, topic, 20)
        translator.refresh()
        gone = translator.downstream(topic, 0, pairs[9][0])
        assert (gone.offset, gone.how) == (None, "expired")
        assert f"begins at {pairs[10][1]}" in gone.why
        assert translator.downstream(topic, 0, pairs[10][0]) == Translated(pairs[10][1], "record")
        assert translator.upstream(topic, 0, pairs[10][1]).how == "expired"
        assert translator.upstream(topic, 0, pairs[20][1]) == Translated(20, "record")


def test_at_least_once_copies_are_translated_to_the_first_of_what_was_written_again(
    world: World, target_cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = f"{world.prefix}-plain"
    spec = spec_of(declared("again", world.source), world.spec.target, topic)
    spec = replace(spec, flow=replace(spec.flow, offsets="translated", delivery="at-least-once", commit_interval=0.05))
    create(target_cluster, f"again.{topic}", 1, REMOTE)
    if syncs_topic("again") not in names(target_cluster):
        create(target_cluster, syncs_topic("again"), 1, {"cleanup.policy": "compact"})
    whole, calls = committing.Committing._write_syncs, itertools.count()

    async def twice(self: committing.Committing, *arguments: object) -> int:
        told = await whole(self, *arguments)  # type: ignore[arg-type]
        if next(calls) % 2 == 0:
            message = "positions are not committed"
            raise ConnectionLost(message)
        return told

    monkeypatch.setattr(committing.Committing, "_write_syncs", twice)
    with Running(spec) as copying:
        for _ in range(3):
            copying.settled_again()
            world.written["plain"].produce(world.plain, 20)
            copying.settled_again()
    assert next(calls) > 3
    offsets = world.written["plain"].offsets
    pairs: list[tuple[int, int]] = []
    for one in committed(spec.target, f"again.{topic}"):
        source = offsets[bytes(one.value() or b"")]
        if not pairs or source > pairs[-1][0]:
            pairs.append((source, one.offset() or 0))
    for offset, found in enumerate(ask(spec, topic, pairs[-1][0] + 1, "downstream")):
        assert (offset, found) == (offset, Translated(first_at(pairs, offset, 0), "record"))
