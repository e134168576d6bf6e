"""The bench from end to end, on real brokers, with a topic small enough for a test."""

from __future__ import annotations

import pytest

from bench.competitors.follower import Follower
from bench.competitors.mm2 import MirrorMaker2
from bench.competitors.ours import Anabranch
from bench.measures.race import race
from bench.reports.race import ratios, report
from bench.workload.load import Load
from bench.workload.profiles import Profile


@pytest.mark.long
def test_a_small_race_is_measured_from_end_to_end() -> None:
    said: list[str] = []
    profile = Profile("small", "few records", Load(300_000, odd=True))
    result = race(profile, (Anabranch(1), MirrorMaker2(2), Follower()), 1, said.append)
    assert result.original.records == 300_000
    assert [len(entry.measurements) for entry in result.entries] == [1, 1, 1]
    for entry in result.entries:
        (one,) = entry.measurements
        assert one.copy.records == 300_000
        assert 0 < one.records <= 300_000
        assert 0 < one.bytes <= result.original.bytes
        assert one.seconds > 0
        assert one.brokers > 0
        assert one.startup > 0
        assert one.startup_cpu > 0
        assert one.memory.together > 0
    ours, theirs, floor = (entry.measurements[0] for entry in result.entries)
    # A follower keeps the batches, and so do we but for the smallest, of which neighbours are merged up to 256 KiB.
    assert floor.copy.batches == result.original.batches
    assert result.original.bytes / 2**18 <= ours.copy.batches <= result.original.batches
    assert ours.memory.worker > 0
    assert ours.memory.driver > 0
    assert theirs.memory.worker == theirs.memory.driver == 0
    assert theirs.cpu > 0
    assert ratios([ours], [theirs])["records/s"] > 0
    text = report([result], {}, "today")
    assert "300,000 records of 250 bytes" in text
    assert "Anabranch, 1 task / Kafka follower" in text
    assert any("run 1 of 1: MirrorMaker 2, 2 tasks" in line for line in said)


@pytest.mark.long
def test_tasks_on_executors_are_measured_with_all_their_processes() -> None:
    profile = Profile("small", "few records", Load(300_000))
    (entry,) = race(profile, (Anabranch(2, executors=True),), 1, lambda _: None).entries
    (one,) = entry.measurements
    assert one.copy.records == 300_000
    assert one.memory.worker > 0
    assert entry.competitor.title == "Anabranch, 2 tasks, on executors"
