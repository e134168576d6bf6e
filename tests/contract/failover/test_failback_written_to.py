"""A failback while others still write, on real brokers without Spark: nothing is taken for back that is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.cli import failback as failbacks
from reconciler.failover.failback import Failback
from reconciler.model.declared.topology import Topology
from reconciler.model.offsets.committed import Log
from reconciler.model.recorded.failover import FailbackPlan
from reconciler.replicator.driver.driver import new_run
from tests.support.commands.failing_over import MOSTLY_TRANSLATED, MakePair, break_off, named, read_from, write
from tests.support.replicator.copying import copy


def copy_back(_topology: Topology, coming: Failback, plan: FailbackPlan) -> None:
    """Copy back without Spark, and let what is parked be found by looking once more."""
    for spec in coming.specs(plan, new_run()):
        copy(spec)


@pytest.fixture
def make(make: MakePair, monkeypatch: pytest.MonkeyPatch) -> MakePair:
    monkeypatch.setattr(failbacks, "_copy_back", copy_back)
    return make


@pytest.mark.long
def test_as_many_records_of_others_are_not_taken_for_what_came_back(
    make: MakePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = make("auto")
    assert pair.over("--yes").code == 0
    write(pair.west, pair.topic, named("new", 10))
    with monkeypatch.context() as patch:
        patch.setattr(failbacks, "_copy_back", break_off)
        broken = pair.back("--yes")
    assert (broken.code, pair.phase) == (1, "returning"), broken
    # The original is handed over, nothing is copied yet, and both end at the same offset now.
    write(pair.east, pair.topic, named("other", 10))
    refused = pair.back("--yes")
    assert (refused.code, "[AB705]" in refused.err, pair.phase) == (4, True, "returning"), refused
    assert "has 10 records that were never copied" in refused.err
    assert f"another client wrote to {pair.topic} at east while" in refused.out
    kept = tmp_path / "kept"
    with monkeypatch.context() as patch:
        patch.setattr(failbacks, "_copy_back", break_off)
        broken = pair.back("--yes", "--rebuild", pair.topic, "--export", kept)
    assert (broken.code, pair.phase) == (1, "returning"), broken
    # It is made anew, and again somebody else is quicker: as many records as the copy has.
    write(pair.east, pair.topic, named("third", 110))
    refused = pair.back("--yes")
    assert (refused.code, "[AB705]" in refused.err) == (4, True), refused
    again = tmp_path / "again"
    done = pair.back("--yes", "--rebuild", pair.topic, "--export", again)
    assert (done.code, pair.phase) == (0, None), done
    exported = [len((folder / f"{pair.topic}.jsonl").read_text().splitlines()) for folder in (kept, again)]
    assert exported == [10, 110]
    everything = read_from(pair.west, pair.topic, 0)
    assert (read_from(pair.east, pair.topic, 0), everything[-10:]) == (everything, named("new", 10))
    write(pair.east, pair.topic, ["more"])
    pair.copy()
    assert read_from(pair.west, pair.topic, 0) == [*everything, "more"]


def test_a_copy_back_that_broke_off_goes_on(make: MakePair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = make("auto")
    assert pair.over("--yes").code == 0
    write(pair.west, pair.topic, named("new", 10))

    def late(topology: Topology, coming: Failback, plan: FailbackPlan) -> None:
        copy_back(topology, coming, plan)
        break_off()

    with monkeypatch.context() as patch:
        patch.setattr(failbacks, "_copy_back", late)
        assert pair.back("--yes").code == 1
    # All of that is back, and there is more.
    write(pair.west, pair.topic, named("newer", 5))
    done = pair.back("--yes")
    assert (done.code, pair.phase) == (0, None), done
    assert read_from(pair.east, pair.topic, 100) == [*named("new", 10), *named("newer", 5)]


def test_who_writes_between_look_and_handing_over_is_noticed(make: MakePair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = make("auto")
    assert pair.over("--yes").code == 0
    write(pair.west, pair.topic, named("new", 10))
    begin = Failback.begin

    def late(self: Failback, plan: FailbackPlan) -> None:
        write(pair.east, pair.topic, named("other", 3))
        begin(self, plan)

    monkeypatch.setattr(Failback, "begin", late)
    refused = pair.back("--yes")
    assert (refused.code, "[AB705]" in refused.err, pair.phase) == (4, True, "over"), refused
    assert "written to while the plan was read" in refused.err
    monkeypatch.setattr(Failback, "begin", begin)
    refused = pair.back("--yes")
    assert (refused.code, "has 3 records that were never copied" in refused.err) == (4, True), refused


@pytest.mark.parametrize("records", [3, 10])
def test_who_writes_right_after_handing_over_is_noticed(
    make: MakePair, records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = make("auto")
    assert pair.over("--yes").code == 0
    write(pair.west, pair.topic, named("new", 10))
    not_back, others = Failback.not_back, [named("other", records)]

    def late(self: Failback, plan: FailbackPlan) -> list[Log]:
        if others:
            write(pair.east, pair.topic, others.pop())
        return not_back(self, plan)

    monkeypatch.setattr(Failback, "not_back", late)
    refused = pair.back("--yes")
    # Ten and the end of their transaction are as much as the copy has: by their ends alone nothing is left to copy.
    assert (refused.code, "[AB705]" in refused.err, pair.phase) == (4, True, "returning"), refused
    assert f"has {records} records that were never copied" in refused.err


@pytest.mark.parametrize("offsets", MOSTLY_TRANSLATED)
def test_what_comes_last_of_all_is_taken_along(make: MakePair, offsets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = make(offsets)
    assert pair.over("--yes").code == 0
    write(pair.west, pair.topic, named("new", 10))
    hand_back, late = Failback.hand_back, ["late"]

    def after_the_last_look(self: Failback, plan: FailbackPlan) -> list[Log]:
        if late:
            # To a partition to which nothing had come.
            write(pair.west, pair.topic, [late.pop(0)], 1)
        return hand_back(self, plan)

    monkeypatch.setattr(Failback, "hand_back", after_the_last_look)
    done = pair.back("--yes", "--format", "json")
    assert (done.code, done.json["problems"], pair.phase) == (0, [], None), done
    assert json.loads(done.out)["plan"]["topics"][0]["new"] == 10
    at_east = {number: read_from(pair.east, pair.topic, 0, number) for number in (0, 1)}
    assert {number: found[100:] for number, found in at_east.items()} == {0: named("new", 10), 1: ["late"]}
    write(pair.east, pair.topic, ["more"], 1)
    pair.copy()
    assert {number: read_from(pair.west, pair.topic, 0, number) for number in (0, 1)} == {
        0: at_east[0],
        1: [*at_east[1], "more"],
    }
