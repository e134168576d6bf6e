"""Partitions that were added on either side while a flow was failed over: named, and nothing of them is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.clusters.consumers import leave_behind, offsets_of
from tests.support.clusters.kafka import declared, grow, partitions
from tests.support.commands.failing_over import MakePair, Pair, named, read_from, write
from tests.support.replicator.copying import log_end


def ends(pair: Pair) -> list[int]:
    east = declared("east", pair.east)
    return [log_end(east, name, number) for name in (pair.topic, pair.other("b"), pair.other("c")) for number in (0, 1)]


@pytest.mark.long
def test_partitions_that_were_added_meanwhile(make: MakePair, tmp_path: Path) -> None:
    # What is made anew goes back with identical offsets, the rest with its own.
    pair = make("translated", "b", "c")
    topic, b, c, group = pair.topic, pair.other("b"), pair.other("c"), pair.group("a")
    leave_behind(pair.east, group, {(topic, 0): 40})
    write(pair.east, c, named("left", 7))
    assert pair.over("--yes", "--leave-behind", 7).code == 0

    # At the copy: its original has nowhere to take it.
    grow(pair.west, topic, 3)
    write(pair.west, topic, named("added", 5), 2)
    leave_behind(pair.west, group, {(topic, 2): 2})
    # At originals: nothing of it ever crossed.
    for one in (b, c):
        grow(pair.east, one, 3)
        write(pair.east, one, named("late", 3), 2)
        write(pair.west, one, named("new", 4))
    before = ends(pair)
    refused = pair.back("--yes", "--rebuild", c, "--export", tmp_path / "kept")
    assert (refused.code, "[AB711]" in refused.err, pair.phase) == (1, True, "over"), refused
    assert f"topic {topic}: it has 2 partitions, and its copy {topic} has 3 by now" in refused.err
    # None of the topics is touched, and nothing is kept of what stays.
    assert (ends(pair), (tmp_path / "kept").exists()) == (before, False)

    grow(pair.east, topic, 3)
    # What stands in an added partition would be dropped with the rest.
    nowhere = pair.back("--yes", "--rebuild", c)
    assert (nowhere.code, f"topic {c}: 10 records of it would be dropped" in nowhere.err) == (1, True), nowhere
    back = pair.back("--yes", "--rebuild", c, "--export", tmp_path / "kept")
    assert (back.code, pair.phase) == (0, None), back
    kept = [json.loads(line) for line in (tmp_path / "kept" / f"{c}.jsonl").read_text().splitlines()]
    assert sorted(one["partition"] for one in kept) == [0] * 7 + [2] * 3

    assert read_from(pair.east, topic, 0, 2) == named("added", 5)
    at_east = offsets_of(pair.east, group)
    assert (at_east[topic, 0], read_from(pair.east, topic, at_east[topic, 2], 2)) == (40, named("added", 5)[2:])
    assert read_from(pair.east, b, 0, 2) == named("late", 3)
    for one in (b, c):
        assert read_from(pair.east, one, 0)[100:] == named("new", 4)

    # The flow goes on, and takes what was added at originals once its copies have grown.
    assert pair.run("apply", "--yes").code == 0
    assert (partitions(pair.west, b), partitions(pair.west, c)) == (3, 3)
    for one in (topic, b, c):
        write(pair.east, one, ["more"], 2)
    pair.copy()
    assert read_from(pair.west, topic, 0, 2) == [*named("added", 5), "more"]
    assert read_from(pair.west, b, 0, 2) == [*named("late", 3), "more"]
    assert read_from(pair.west, c, 0, 2) == ["more"]
