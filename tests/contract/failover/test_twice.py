"""Failover and failback by two at the same time, and begun anew after somebody died in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from reconciler.cli import failback, failover
from reconciler.failover.failback import Failback
from reconciler.failover.failover import Failover
from reconciler.state.lock import Lock
from tests.support.clusters.consumers import leave_behind, member_of, offsets_of
from tests.support.clusters.kafka import declared, topic_id
from tests.support.commands.failing_over import MOSTLY_TRANSLATED, MakePair, Pair, Said, dies, named, read_from, write
from tests.support.replicator.copying import log_end

Patch = pytest.MonkeyPatch
LEFT = "--yes", "--leave-behind", "10"


def beside(patch: Patch, command: ModuleType, other: Callable[[], Said], mine: Callable[[], Said]) -> tuple[Said, Said]:
    """Run a command, and another one whole between its look at everything and its first step; return what both said."""
    planned, said = command.acl_plan, list[Said]()

    def and_other(*arguments: object, **named: object) -> object:
        plan = planned(*arguments, **named)
        if not said:
            patch.setattr(command, "acl_plan", planned)
            said.append(other())
        return plan

    patch.setattr(command, "acl_plan", and_other)
    return mine(), said[0]


def test_of_two_at_the_same_time_one_is_told(make: MakePair, tmp_path: Path, monkeypatch: Patch) -> None:
    pair = make("auto")
    group, log = pair.group("a"), (pair.topic, 0)
    leave_behind(pair.east, group, {log: 40})
    write(pair.east, pair.topic, ["left"])
    told, first = beside(monkeypatch, failover, lambda: pair.over(*LEFT), lambda: pair.over(*LEFT))
    assert (first.code, told.code, "[AB407]" in told.err, pair.phase) == (0, 4, True, "over"), (first, told)
    assert offsets_of(pair.west, group) == {log: 40}

    write(pair.west, pair.topic, ["new"])
    before = topic_id(pair.east, pair.topic)
    leave_behind(pair.west, group, {log: 60})
    wishes = ("--yes", "--rebuild", pair.topic, "--export")
    told, first = beside(
        monkeypatch, failback, lambda: pair.back(*wishes, tmp_path / "a"), lambda: pair.back(*wishes, tmp_path / "b")
    )
    assert (first.code, told.code, "[AB407]" in told.err, pair.phase) == (0, 4, True, None), (first, told)
    # What the other one has made anew stays, and nothing was kept a second time.
    anew = topic_id(pair.east, pair.topic)
    assert (anew != before, (tmp_path / "b").exists(), offsets_of(pair.east, group)) == (True, False, {log: 60})
    everything = read_from(pair.east, pair.topic, 0)
    assert everything == read_from(pair.west, pair.topic, 0)

    # What was over when the one looked is back by the time it begins.
    assert pair.over("--yes").code == 0
    told, first = beside(monkeypatch, failover, lambda: pair.back("--yes"), lambda: pair.over("--yes"))
    assert (first.code, told.code, "[AB407]" in told.err, pair.phase) == (0, 4, True, None), (first, told)


@contextmanager
def locked(pair: Pair) -> Iterator[None]:
    """Hold the target's lock as another command would."""
    lock = Lock(declared("west", pair.west), pair.name)
    lock.take(10)
    try:
        yield
    finally:
        lock.release()


def test_who_does_not_get_the_lock_changes_nothing(make: MakePair, monkeypatch: Patch) -> None:
    pair = make("auto")
    for command in (failover, failback):
        monkeypatch.setattr(command, "LOCK_SECONDS", 0.5)
    with locked(pair):
        over = pair.over("--yes")
    assert (over.code, "[AB501]" in over.err, pair.phase) == (5, True, None), over
    assert pair.over("--yes").code == 0
    with locked(pair):
        back = pair.back("--yes")
    assert (back.code, "[AB501]" in back.err, pair.phase) == (5, True, "over"), back


@pytest.mark.parametrize("offsets", MOSTLY_TRANSLATED)
def test_a_failover_that_dies_is_finished_by_the_next(make: MakePair, offsets: str, monkeypatch: Patch) -> None:
    pair = make(offsets)
    head, busy, log = pair.group("head"), pair.group("busy"), (pair.topic, 0)
    write(pair.east, pair.topic, named("left", 10))
    for group in (head, busy):
        # One that has read what never crossed.
        leave_behind(pair.east, group, {log: 105, (pair.topic, 1): 40})
    for step, phase in (("begin", "ending"), ("cut", "over")):
        dies(monkeypatch, Failover, step, lambda: pair.over(*LEFT), after=True)
        assert (pair.phase, offsets_of(pair.west, head)) == (phase, {}), step
    # Who knows that it is over may write already; nobody who comes from the source has read that.
    end = log_end(declared("west", pair.west), pair.topic)
    write(pair.west, pair.topic, named("new", 50))
    with member_of(pair.west, busy, [pair.topic]):
        dies(monkeypatch, Failover, "move", lambda: pair.over(*LEFT), after=True)
    again = pair.over(*LEFT, "--format", "json")
    assert (again.code, again.json["plan"]["recordsNotCopied"], pair.phase) == (0, 10, "over"), again
    for group in (head, busy):
        assert offsets_of(pair.west, group)[log] == end
    assert read_from(pair.west, pair.topic, end) == named("new", 50)


@pytest.mark.parametrize("offsets", MOSTLY_TRANSLATED)
def test_a_failback_that_dies_is_finished_by_the_next(make: MakePair, offsets: str, monkeypatch: Patch) -> None:
    pair = make(offsets)
    group, eager, log = pair.group("a"), pair.group("eager"), (pair.topic, 0)
    for one in (group, eager):
        leave_behind(pair.east, one, {log: 40})
    assert pair.over("--yes").code == 0
    write(pair.west, pair.topic, named("new", 50))
    end = log_end(declared("west", pair.west), pair.topic)
    for one in (group, eager):
        leave_behind(pair.west, one, {log: end - 21})

    at_east = log_end(declared("east", pair.east), pair.topic)
    steps = ((Failback, "begin"), (failback, "_copy_back"), (Failback, "hand_back"), (Failback, "move"))
    for where, step in steps:
        dies(monkeypatch, where, step, lambda: pair.back("--yes"), after=True)
        assert pair.phase == "returning", step
    # Who is put there may read on at once.
    leave_behind(pair.east, eager, {log: (read_on := offsets_of(pair.east, eager)[log] + 5)})
    refused = pair.over("--yes")
    assert (refused.code, "[AB701]" in refused.err, pair.phase) == (4, True, "returning"), refused
    back = pair.back("--yes")
    assert (back.code, pair.phase) == (0, None), back
    assert offsets_of(pair.east, eager)[log] == read_on
    # However often it was begun, everything came back once.
    assert read_from(pair.east, pair.topic, at_east) == named("new", 50)
    assert read_from(pair.east, pair.topic, offsets_of(pair.east, group)[log]) == named("new", 50)[30:]
    write(pair.east, pair.topic, ["more"])
    pair.copy()
    assert read_from(pair.west, pair.topic, end) == ["more"]
