"""What retention deletes on either side while a flow is failed over: nothing twice, and nothing is lost unnamed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.failover.failback import Failback
from reconciler.replicator.takeover import identical
from tests.support.clusters.consumers import leave_behind, offsets_of
from tests.support.clusters.kafka import declared, delete_records
from tests.support.commands.failing_over import MakePair, Pair, dies, named, read_from, write
from tests.support.replicator.copying import log_end


def deleted_at_the_copy(pair: Pair) -> int:
    """Write 50 records to the copy and delete 20 of them, with all before them; return where its log begins."""
    end = log_end(declared("west", pair.west), pair.topic)
    write(pair.west, pair.topic, named("new", 50))
    delete_records(pair.west, pair.topic, end + 20)
    return end + 20


def goes_on(pair: Pair, *topics: str) -> None:
    """Assert that the flow goes on behind what came back, and copies nothing twice."""
    before = {topic: read_from(pair.west, topic, 0) for topic in topics}
    for topic in topics:
        write(pair.east, topic, ["more"])
    pair.copy()
    assert {topic: read_from(pair.west, topic, 0) for topic in topics} == {
        topic: [*values, "more"] for topic, values in before.items()
    }


@pytest.mark.parametrize(
    ("offsets", "fillable"),
    [("auto", 5), pytest.param("translated", 0, marks=pytest.mark.long)],
    ids=["shifted", "translated"],
)
def test_what_a_copy_has_lost_of_what_came_to_it_is_named(
    make: MakePair, monkeypatch: pytest.MonkeyPatch, offsets: str, fillable: int
) -> None:
    monkeypatch.setattr(identical, "_FILLABLE_LOSS", fillable)
    pair = make(offsets)
    old, fresh, log = pair.group("old"), pair.group("fresh"), (pair.topic, 0)
    leave_behind(pair.east, old, {log: 40})
    leave_behind(pair.east, fresh, {log: 100})
    assert pair.over("--yes").code == 0
    begin = deleted_at_the_copy(pair)
    leave_behind(pair.west, fresh, {log: begin + 10})
    lost = pair.back("--yes")
    assert (lost.code, "[AB208]" in lost.err, pair.phase) == (1, True, "returning"), lost
    assert f"{begin - 20} to {begin - 1}" in lost.err
    assert read_from(pair.east, pair.topic, 100) == []

    pair.go_on_behind_losses()
    back = pair.back("--yes")
    assert (back.code, pair.phase) == (0, None), back
    assert read_from(pair.east, pair.topic, 100) == named("new", 50)[20:]
    # Who has read nothing of the copy reads all that is left, and who has read on reads the rest.
    at_east = offsets_of(pair.east, fresh)[log]
    assert read_from(pair.east, pair.topic, at_east) == named("new", 50)[30:]
    assert offsets_of(pair.east, old) == {log: 40}
    goes_on(pair, pair.topic)
    # And over again, in what came back.
    leave_behind(pair.east, fresh, {log: at_east + 5})
    refused = pair.over("--yes")
    # Of what the other one reads next the copy has nothing.
    assert (refused.code, refused.err.count("[AB730]"), f"group {old}" in refused.err) == (4, 1, True), refused
    over = pair.over("--yes", "--without-group", old)
    assert (over.code, over.err.count("[AB710]"), offsets_of(pair.west, old)) == (0, 0, {log: 40}), over
    at_west = offsets_of(pair.west, fresh)[log]
    assert read_from(pair.west, pair.topic, at_west) == [*named("new", 50)[35:], "more"]


def test_strangers_are_told_from_what_was_deleted_once_it_was_back(
    make: MakePair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = make("translated")
    assert pair.over("--yes").code == 0
    end = log_end(declared("west", pair.west), pair.topic)
    write(pair.west, pair.topic, named("new", 50))
    dies(monkeypatch, Failback, "hand_back", lambda: pair.back("--yes"), after=False)
    delete_records(pair.west, pair.topic, end + 20)
    write(pair.east, pair.topic, named("stranger", 2))
    back = pair.back("--yes")
    assert (back.code, back.err.count("[AB713]"), pair.phase) == (1, 1, None), back
    # Of the fifty that came back twenty are on one side alone.
    assert "of 32 records from offset 120 on 30 came back" in back.err
    assert read_from(pair.east, pair.topic, 100) == [*named("new", 50), *named("stranger", 2)]


@pytest.mark.parametrize(
    ("offsets", "option"), [pytest.param("auto", "--export-topic", marks=pytest.mark.long), ("translated", "--export")]
)
def test_what_a_copy_has_lost_is_kept_and_what_its_original_has_deleted_is_in_nobodys_way(
    make: MakePair, tmp_path: Path, offsets: str, option: str
) -> None:
    pair = make(offsets, "whole", "half", "none")
    lossy, whole, half, none = pair.topic, *map(pair.other, ("whole", "half", "none"))
    gone, read, log = pair.group("gone"), pair.group("read"), (half, 0)
    for group, offset in ((gone, 20), (read, 40)):
        leave_behind(pair.east, group, {log: offset})
    for topic in (lossy, whole):
        write(pair.east, topic, named("left", 7))
    assert pair.over("--yes", "--leave-behind", 14).code == 0
    for topic in (lossy, whole, half, none):
        write(pair.west, topic, named("new", 5))
    for group, offset in ((gone, 30), (read, 70)):
        leave_behind(pair.west, group, {log: offset})
    first = read_from(pair.east, lossy, 0)[:40]
    delete_records(pair.west, lossy, 40)
    # What originals have deleted their copies need not lack.
    for topic, begin in ((whole, 60), (half, 60), (none, 100)):
        delete_records(pair.east, topic, begin)

    wishes = ("--yes", "--rebuild", lossy, "--rebuild", whole)
    nowhere = pair.back(*wishes)
    assert (nowhere.code, nowhere.err.count("[AB708]"), pair.phase) == (1, 2, "over"), nowhere
    assert f"topic {lossy}: 47 records of it would be dropped" in nowhere.err
    assert f"topic {whole}: 7 records of it would be dropped" in nowhere.err
    assert "47 records of east exported and deleted" in " ".join(nowhere.out.split())

    place = f"{pair.topic}-kept" if option == "--export-topic" else str(tmp_path / "kept")
    back = pair.back(*wishes, option, place)
    # Of one group nobody can say where the record is that it reads next: it is deleted.
    assert (back.code, back.err.count("[AB710]"), pair.phase) == (1, 1, None), back
    assert f"group {gone}, topic {half}, partition 0" in back.err
    assert (offsets_of(pair.east, gone), offsets_of(pair.east, read)) == ({log: 20}, {log: 70})
    if option == "--export-topic":
        assert f"54 records that copies do not have are in topic {place} of west" in back.err
        assert sorted(read_from(pair.west, place, 0)) == sorted([*first, *named("left", 7), *named("left", 7)])
    else:
        lines = {one: (tmp_path / "kept" / f"{one}.jsonl").read_text().splitlines() for one in (lossy, whole)}
        assert [json.loads(line)["offset"] for line in lines[lossy]] == [*range(40), *range(100, 107)]
        assert [json.loads(line)["offset"] for line in lines[whole]] == list(range(100, 107))
    for topic in (lossy, whole):
        assert read_from(pair.east, topic, 0) == read_from(pair.west, topic, 0)
    for topic in (lossy, whole, half, none):
        assert read_from(pair.east, topic, 0)[-5:] == named("new", 5)
    assert read_from(pair.east, none, 0) == named("new", 5)
    goes_on(pair, lossy, whole, half, none)
