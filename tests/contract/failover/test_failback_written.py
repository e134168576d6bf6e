"""Somebody writes to an original while it is made anew, or while its copy is copied back: nothing is lost unnamed."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer

from reconciler.cli import failback
from reconciler.failover.failback import Failback
from reconciler.model.recorded.failover import FailbackPlan
from tests.support.clusters.consumers import leave_behind, offsets_of
from tests.support.clusters.kafka import declared, delete_records, topic_id
from tests.support.commands.failing_over import MakePair, Pair, Said, copy_back, named, read_from, write
from tests.support.replicator.copying import log_end, wait_until_ends_at


def while_it_is_read(patch: pytest.MonkeyPatch, pair: Pair, *arguments: object) -> Said:
    """Fail back, and have somebody write to the original between the look at it and the first step."""
    planned = Failback.plan

    def and_then(coming: Failback) -> FailbackPlan:
        plan = planned(coming)
        write(pair.east, pair.topic, ["late"])
        return plan

    with patch.context() as inner:
        inner.setattr(Failback, "plan", and_then)
        return pair.back("--yes", *arguments)


def behind_the_export(patch: pytest.MonkeyPatch, pair: Pair, *arguments: object) -> Said:
    """Fail back, and have somebody write to another partition of the original right after its records are exported."""
    exported = failback._exported

    def and_then(*given: object) -> None:
        exported(*given)  # type: ignore[arg-type]
        write(pair.east, pair.topic, ["later"], 1)

    with patch.context() as inner:
        inner.setattr(failback, "_exported", and_then)
        return pair.back("--yes", *arguments)


def abort(pair: Pair) -> None:
    """Leave nothing but an aborted transaction behind what was copied of the original's first partition."""
    producer = Producer(pair.east.client_config() | {"transactional.id": f"{pair.topic}-aborts", "log_level": "2"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(pair.topic, b"aborted", partition=0)
    producer.flush(300)
    producer.abort_transaction(60)
    wait_until_ends_at(declared("east", pair.east), pair.topic, 102)


def test_what_holds_no_record_is_in_nobodys_way(make: MakePair) -> None:
    pair = make("translated")
    abort(pair)
    assert pair.over("--yes").code == 0
    end = log_end(declared("west", pair.west), pair.topic)
    write(pair.west, pair.topic, named("new", 5))
    back = pair.back("--yes", "--format", "json")
    assert (back.code, pair.phase, back.json["problems"]) == (0, None, []), back
    assert read_from(pair.east, pair.topic, 100) == named("new", 5)
    write(pair.east, pair.topic, ["more"])
    pair.copy()
    assert read_from(pair.west, pair.topic, end) == [*named("new", 5), "more"]


def test_what_holds_no_record_is_in_the_way_of_the_same_offsets(make: MakePair, tmp_path: Path) -> None:
    pair = make("auto")
    abort(pair)
    assert pair.over("--yes").code == 0
    write(pair.west, pair.topic, named("new", 5))
    refused = pair.back("--yes")
    assert (refused.code, "[AB705]" in refused.err, "no record is lost, as all were copied" in refused.err) == (
        4,
        True,
        True,
    ), refused
    # Nothing is dropped: nobody has to say where that would be kept.
    assert pair.back("--yes", "--rebuild", pair.topic).code == 0
    assert read_from(pair.east, pair.topic, 100) == named("new", 5)


def test_what_is_written_at_any_moment_is_neither_dropped_nor_mixed(
    make: MakePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = make("auto")
    anew = ("--rebuild", pair.topic)
    assert pair.over("--yes").code == 0
    write(pair.west, pair.topic, named("new", 5))
    before = topic_id(pair.east, pair.topic)

    # While the plan is read: nothing had diverged in it.
    refused = while_it_is_read(monkeypatch, pair)
    assert (refused.code, "[AB705]" in refused.err, pair.phase) == (4, True, "over"), refused
    assert "partition 0: it was written to while the plan was read" in refused.err
    assert read_from(pair.east, pair.topic, 100) == ["late"]
    again = pair.back("--yes")
    assert (again.code, "has 1 records that were never copied" in again.err) == (4, True), again

    # And where retention had taken all that would have to be kept.
    end = log_end(declared("east", pair.east), pair.topic)
    delete_records(pair.east, pair.topic, end)
    nowhere = while_it_is_read(monkeypatch, pair, *anew)
    assert (nowhere.code, "1 records of it would be dropped" in nowhere.err, pair.phase) == (1, True, "over"), nowhere
    assert (topic_id(pair.east, pair.topic), read_from(pair.east, pair.topic, end)) == (before, ["late"])

    # Behind the export nothing is deleted, nor anything copied back.
    refused = behind_the_export(monkeypatch, pair, *anew, "--export", tmp_path / "first")
    assert (refused.code, "[AB712]" in refused.err, pair.phase) == (4, True, "returning"), refused
    assert f"topic {pair.topic}, partition 1: it was written to" in refused.err
    assert topic_id(pair.east, pair.topic) == before
    assert [read_from(pair.east, pair.topic, *place) for place in ((end, 0), (100, 1))] == [["late"], ["later"]]
    assert read_from(pair.west, pair.topic, 100) == named("new", 5)

    done = pair.back("--yes", *anew, "--export", tmp_path / "second")
    assert (done.code, pair.phase) == (0, None), done
    counts = [len((tmp_path / one / f"{pair.topic}.jsonl").read_text().splitlines()) for one in ("first", "second")]
    assert counts == [1, 2]
    assert read_from(pair.east, pair.topic, 0) == read_from(pair.west, pair.topic, 0)


def test_what_is_written_among_what_came_back_is_named(make: MakePair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = make("translated")
    group, log = pair.group("a"), (pair.topic, 0)
    leave_behind(pair.east, group, {log: 100})
    assert pair.over("--yes").code == 0
    write(pair.west, pair.topic, named("new", 5))
    first = log_end(declared("east", pair.east), pair.topic)

    def and_then(*arguments: object) -> None:
        copy_back(*arguments)  # type: ignore[arg-type]
        write(pair.east, pair.topic, ["stranger-0", "stranger-1"])

    with monkeypatch.context() as patch:
        patch.setattr(failback, "_copy_back", and_then)
        back = pair.back("--yes")
    assert (back.code, back.err.count("[AB713]"), pair.phase) == (1, 1, None), back
    assert f"topic {pair.topic}, partition 0: of 7 records from offset {first} on 5 came back" in back.err
    # They stand where the message says, are not read twice, and never cross.
    came = [*named("new", 5), "stranger-0", "stranger-1"]
    assert read_from(pair.east, pair.topic, first) == came
    assert read_from(pair.east, pair.topic, offsets_of(pair.east, group)[log]) == came
    write(pair.east, pair.topic, ["more"])
    pair.copy()
    assert read_from(pair.west, pair.topic, 100) == [*named("new", 5), "more"]


def test_a_stranger_among_identical_offsets_leaves_the_way_out_of_making_anew(
    make: MakePair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = make("auto")
    assert pair.over("--yes").code == 0
    write(pair.west, pair.topic, named("new", 5))

    def and_before(*arguments: object) -> None:
        write(pair.east, pair.topic, ["stranger"])
        copy_back(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(failback, "_copy_back", and_before)
        parked = pair.back("--yes")
    assert (parked.code, "[AB209]" in parked.err, pair.phase) == (1, True, "returning"), parked
    assert read_from(pair.east, pair.topic, 100) == ["stranger"]
    back = pair.back("--yes", "--rebuild", pair.topic, "--export", tmp_path)
    assert (back.code, pair.phase) == (0, None), back
    assert len((tmp_path / f"{pair.topic}.jsonl").read_text().splitlines()) == 1
    assert read_from(pair.east, pair.topic, 100) == named("new", 5)
