"""Offsets of logs of all kinds, translated both ways after the processes that copied them were killed again and again.

Each record has a value of its own, so what is right is found by reading both logs.
"""

from __future__ import annotations

import os
import random
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest
from confluent_kafka import TopicPartition

from reconciler.checkpoints.translation.translate import Translator
from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import OffsetsMode
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.offsets.translation import Question, Translated, Way
from reconciler.model.tasks.spec import FlowSpec
from tests.conftest import MakeClusters
from tests.support.clusters.kafka import ANSWER_SECONDS, admin, create, declared, delete_records, set_config
from tests.support.replicator.all_kinds import EAGER, KINDS, SECONDS
from tests.support.replicator.copying import REMOTE, Running, spec_of
from tests.support.replicator.growing import COMPACTED_KINDS, PARTITIONS, Growing, Pair
from tests.support.replicator.killed import Killed, Log, bounds
from tests.support.replicator.translated import committed
from tests.support.replicator.two_runs import another

WAYS: tuple[Way, ...] = ("downstream", "upstream")
MODES: tuple[OffsetsMode, ...] = ("translated", "identical")
# Of each flow, and random questions each way.
KILLS, PAIRS = 50, 10_000
# Turns of writing before anything is copied, and records of one log that are deleted before.
BACKLOG, LATE = 20, 20
# Thousands of gaps may be left to be filled.
PATIENCE = 300.0
# How many offsets at both ends of each log are asked for, whatever chance says.
EDGE = 60

Truth = Mapping[Log, Sequence[Pair]]


class Sides(NamedTuple):
    """One partition: where each copied record stands on both sides, and where both logs begin and end."""

    pairs: Sequence[Pair]
    source: tuple[int, int]
    target: tuple[int, int]

    def seen(self, way: Way) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the log that is asked about, and the other one."""
        return (self.source, self.target) if way == "downstream" else (self.target, self.source)

    @property
    def is_shifted(self) -> bool:
        return self.source[1] != self.target[1] or any(source != target for source, target in self.pairs)


class Flows:
    """The same topics of one source, taken by two flows: one translates offsets, one keeps them."""

    def __init__(self, clusters: Sequence[EmbeddedCluster], chance: random.Random) -> None:
        self.source, self.target = clusters
        # The clusters are this test's alone, so are the names.
        self.growing = Growing(self.source, "killed", random.Random(chance.random()), pause=0.2)
        for _ in range(BACKLOG):
            self.growing.write()
        self.specs: dict[OffsetsMode, FlowSpec] = {mode: self._spec(mode) for mode in MODES}
        self.growing.compact(self.specs["identical"].source)
        delete_records(self.source, self.originals[0][0], LATE)

    def _spec(self, mode: OffsetsMode) -> FlowSpec:
        spec = spec_of(declared(mode, self.source), declared("west", self.target), "killed-.*")
        spec = replace(spec, flow=replace(spec.flow, offsets=mode))
        create(self.target, syncs_topic(mode), 1, {"cleanup.policy": "compact", "min.compaction.lag.ms": "604800000"})
        for topic, _ in self.originals[::PARTITIONS]:
            # Only segments that are not written to any more are compacted, as they are at the end.
            create(self.target, spec.flow.remote_topic(topic), PARTITIONS, REMOTE | {"segment.ms": "1000"})
        return spec

    @property
    def originals(self) -> list[Log]:
        return [(self.growing.written[kind].topic, number) for kind in KINDS for number in range(PARTITIONS)]

    def copies(self, mode: OffsetsMode) -> list[Log]:
        return [(self.specs[mode].flow.remote_topic(topic), number) for topic, number in self.originals]

    def translator(self, mode: OffsetsMode) -> Translator:
        spec = self.specs[mode]
        return Translator(spec.source, spec.target, spec.flow, spec.topology)

    def catch_up(self) -> None:
        """Copy all that there is and some more, let compaction take of that what it can, and copy what is left."""
        for spec in self.specs.values():
            with Running(another(spec)) as copying:
                for _ in range(3):
                    self.growing.write()
                    copying.settled_again(PATIENCE, running=True)
        self.growing.compact(self.specs["identical"].source)
        self.growing.abort_last()
        for spec in self.specs.values():
            with Running(another(spec)) as copying:
                copying.settled_again(PATIENCE, running=True)

    def truth(self, mode: OffsetsMode) -> Truth:
        kinds = (kind for kind in KINDS for _ in range(PARTITIONS))
        logs = zip(kinds, self.originals, strict=True)
        return {log: self.growing.pairs(self.specs[mode], kind, log[1]) for kind, log in logs}

    def sides(self, mode: OffsetsMode, truth: Truth) -> dict[Log, Sides]:
        here = bounds(self.specs[mode].source, self.originals)
        there = bounds(self.specs[mode].target, self.copies(mode))
        return {log: Sides(truth[log], *both) for log, *both in zip(self.originals, here, there, strict=True)}

    def assert_hard(self, truth: Truth) -> None:
        """Assert that holes were copied, and that compaction took what had been copied: else all would be easy."""
        for kind in COMPACTED_KINDS:
            logs = [(self.growing.written[kind].topic, number) for number in range(PARTITIONS)]
            assert len({(log, target - source) for log in logs for source, target in truth[log]}) > 10
            assert records(self.specs["translated"].source, logs[0][0]) < sum(len(truth[log]) for log in logs)

    def delete(self, truths: Mapping[OffsetsMode, Truth]) -> None:
        """Delete about a tenth of the originals' records, and a fifth of their copies."""
        doomed = [(self.source, log, truths["identical"][log], 0, 10) for log in self.originals]
        for mode in MODES:
            logs = zip(self.copies(mode), self.originals, strict=True)
            doomed += [(self.target, copied, truths[mode][log], 1, 5) for copied, log in logs]
        for broker, log, pairs, side, part in doomed:
            client = admin(broker)
            before = TopicPartition(*log, pairs[len(pairs) // part][side])
            for future in client.delete_records([before]).values():
                future.result(ANSWER_SECONDS)

    def compact(self, mode: OffsetsMode) -> None:
        """Let compaction take of copies what it takes of their originals, and wait until it has taken something."""
        target = self.specs[mode].target
        topics = [self.specs[mode].flow.remote_topic(self.growing.written[kind].topic) for kind in COMPACTED_KINDS]
        before = {topic: records(target, topic) for topic in topics}
        for topic in topics:
            set_config(self.target, topic, "min.cleanable.dirty.ratio", "0.001")
            set_config(self.target, topic, "cleanup.policy", "compact")
        for topic in topics:
            deadline = time.monotonic() + SECONDS
            while records(target, topic) == before[topic]:
                assert time.monotonic() < deadline, "nothing is compacted"
                time.sleep(0.2)


def records(cluster: Cluster, topic: str) -> int:
    """Return how many committed records a topic holds now."""
    return sum(len(committed(cluster, topic, number)) for number in range(PARTITIONS))


def grow_while_killed(flows: Flows, killed: Collection[Killed], translators: Collection[Translator]) -> None:
    """Write until all are killed as often as they are to be, and look meanwhile as who translates all along does."""
    for thread in (flows.growing, *killed):
        thread.start()
    while any(one.is_alive() for one in killed):
        time.sleep(1.0)
        for translator in translators:
            translator.refresh(flows.originals)
    for one in killed:
        one.wait()
    flows.growing.finish()


def questions(sides: Mapping[Log, Sides], way: Way, count: int, chance: random.Random) -> list[Question]:
    """Return as many random ones, and those about the begin and the end of each log, and past them."""
    logs = list(sides)
    found: list[Question] = []
    for _ in range(count):
        log = chance.choice(logs)
        found.append(Question(*log, chance.randint(0, sides[log].seen(way)[0][1]), way))
    for log, both in sides.items():
        start, end = both.seen(way)[0]
        edges = {*range(EDGE), start - 1, start, start + 1, *range(end - EDGE, end + 2), end + 1_000}
        found += [Question(*log, offset, way) for offset in sorted(edges) if offset >= 0]
    return found


def assert_exact(mode: OffsetsMode, sides: Sides, question: Question, found: Translated) -> None:
    """Assert that who goes on at the answer reads all copied records from the one asked for on, and no other."""
    asked, way = question.offset, question.way
    (_, end), (start, other_end) = sides.seen(way)
    side = WAYS.index(way)
    at = bisect_left(sides.pairs, asked, key=lambda pair: pair[side])
    before = sides.pairs[at - 1][1 - side] if at else -1
    first = sides.pairs[at][1 - side] if at < len(sides.pairs) else None
    told = f"{mode}: {question} is {found}; records stand at {before} and {first} of {start} to {other_end}"
    if first is not None and first < start:
        assert (found.offset, found.how) == (None, "expired"), told
    elif mode == "translated" and first is not None:
        assert found == Translated(first, "record"), told
    elif mode == "identical" and found.how == "expired":
        # No record stands at the place, which is deleted.
        assert before + 1 < start, told
        assert sides.is_shifted or asked < start, told
    else:
        assert found.offset is not None, told
        # With identical offsets a place without a record stays one: what is read next is the same.
        assert before < found.offset <= (other_end if first is None else first), told
        is_end = mode == "translated" or found.offset == other_end
        assert found.how == ("ahead" if asked > end else "end" if is_end else "record"), told
        assert found.offset == other_end or mode == "identical" or way == "upstream", told
        if mode == "identical" and not sides.is_shifted:
            assert found.offset == min(asked, other_end), told


def ask(flows: Flows, mode: OffsetsMode, asked: Sequence[Question]) -> list[Translated]:
    with flows.translator(mode) as translator:
        return translator.answers(asked)


def prove(
    flows: Flows, mode: OffsetsMode, truth: Truth, old: Translator, count: int, chance: random.Random
) -> Counter[str]:
    """Assert that all answers are exact, whoever gives them; return how many there are of each kind."""
    sides = flows.sides(mode, truth)
    asked = [one for way in WAYS for one in questions(sides, way, count, chance)]
    answers = ask(flows, mode, asked)
    for question, found in zip(asked, answers, strict=True):
        assert_exact(mode, sides[question.topic, question.partition], question, found)
    # Who has looked on all along says the same as who reads everything now.
    assert old.answers(asked) == answers
    kinds: Counter[str] = Counter(one.how for one in answers)
    assert "unknown" not in kinds
    assert kinds["record"] > count
    assert kinds["end"] > 0
    assert kinds["ahead"] > 0
    longest = max(one.source[1] for one in sides.values())
    shifted = sum(one.is_shifted for one in sides.values()) if mode == "identical" else 0
    print(
        f"{mode}: {2 * count:,} random pairs and {len(asked) - 2 * count:,} at the ends, all {len(answers):,} exact, "
        f"{dict(kinds)}; {len(sides)} logs of up to {longest:,} offsets, {shifted} with shifted runs"
    )
    return kinds


@pytest.mark.timeout(1500)
@pytest.mark.long
def test_every_answer_is_exact_however_often_those_who_copied_were_killed(make_clusters: MakeClusters) -> None:
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"what is written, killed and asked comes of seed {seed}")
    chance = random.Random(seed)
    flows = Flows(make_clusters("growing", "copies", options=EAGER), chance)
    killed = {
        mode: Killed(flows.specs[mode], flows.copies(mode), KILLS, random.Random(chance.random())) for mode in MODES
    }
    with flows.translator("translated") as translated, flows.translator("identical") as identical:
        old: dict[OffsetsMode, Translator] = {"translated": translated, "identical": identical}
        grow_while_killed(flows, killed.values(), old.values())
        for mode, one in killed.items():
            print(f"{mode}: killed {one.kills} times, {one.copying} of them once it had written")
            assert one.kills == KILLS
            assert one.copying >= KILLS * 4 // 5
        flows.catch_up()
        truths = {mode: flows.truth(mode) for mode in MODES}
        flows.assert_hard(truths["translated"])
        for mode in MODES:
            prove(flows, mode, truths[mode], old[mode], PAIRS, chance)
        flows.delete(truths)
        for mode in MODES:
            print("with the first records deleted", end=", ")
            assert prove(flows, mode, truths[mode], old[mode], PAIRS, chance)["expired"] > PAIRS // 10
        for mode in MODES:
            print("with the copies compacted", end=", ")
            flows.compact(mode)
            prove(flows, mode, truths[mode], old[mode], PAIRS, chance)
