"""What changes at the clusters while a failover is planned, waited for, and done."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from reconciler.checkpoints.groups.groups import Groups
from reconciler.checkpoints.service.rounds import Rounds
from reconciler.failover.failover import Failover
from reconciler.failover.options import FailoverOptions
from reconciler.model.names.own_names import lease_group
from reconciler.model.offsets.committed import Log, LogBounds
from reconciler.model.tasks.status import TaskStatus
from reconciler.state.status import StatusWriter
from tests.support.clusters.consumers import join_share_group, leave_behind, member_of, offsets_of
from tests.support.clusters.kafka import create, declared, delete, grow
from tests.support.commands.failing_over import MakePair, Pair, ends_of, read_from, write


@pytest.fixture
def pair(make: MakePair) -> Pair:
    return make("auto")


def leaving(pair: Pair) -> Failover:
    topology = pair.topology
    return Failover(topology, topology.flows[0], FailoverOptions())


def test_who_cannot_be_asked_is_not_caught_up_with(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Groups.bounds

    def without_a_leader(self: Groups, logs: Iterable[Log]) -> dict[Log, LogBounds]:
        away = (pair.topic, 1) if self.cluster.alias == "east" else None
        return {log: one for log, one in whole(self, logs).items() if log != away}

    monkeypatch.setattr(Groups, "bounds", without_a_leader)
    said = pair.over("--yes", "--until-caught-up", "--patience", 1)
    assert (said.code, "[AB707]" in said.err, pair.phase) == (1, True, None), said
    assert f"unknown for {pair.topic}/1: no leader, or not visible" in said.err
    monkeypatch.undo()
    done = pair.over("--yes", "--until-caught-up")
    assert (done.code, pair.phase) == (0, "over"), done


def test_partitions_of_an_original_that_no_copy_has_are_not_copied(pair: Pair) -> None:
    grow(pair.east, pair.topic, 3)
    write(pair.east, pair.topic, ["in a new one"], partition=2)
    said = pair.over("--yes", "--until-caught-up", "--patience", 1, "--format", "json")
    assert (said.code, "1 record is not copied" in said.err, pair.phase) == (1, True, None), said
    shown = pair.over("--dry-run", "--format", "json").json["plan"]
    assert [(one["partition"], one["copied"], one["waiting"]) for one in shown["partitions"]] == [
        (0, 100, 0),
        (1, 100, 0),
        (2, -1, 1),
    ]
    # It stays behind where that is allowed, and no cut tells of a partition that the copy does not have.
    assert pair.over("--yes", "--leave-behind", 1).code == 0
    assert ends_of(pair) == ((100, 100), (100, 100))


def test_a_topic_that_has_no_copy_yet_is_not_copied(pair: Pair) -> None:
    late, group, only = pair.other("late"), pair.group("a"), pair.group("only")
    create(pair.east, late, 1)
    write(pair.east, late, ["in a new topic"])
    leave_behind(pair.east, group, {(pair.topic, 0): 40, (late, 0): 1})
    leave_behind(pair.east, only, {(late, 0): 0})
    said = pair.over("--yes", "--until-caught-up", "--patience", 1, "--without-group", "all")
    assert (said.code, "1 record is not copied" in said.err, pair.phase) == (1, True, None), said
    shown = pair.over("--dry-run", "--format", "json").json["plan"]
    found = {(one["topic"], one["partition"]): (one["copied"], one["waiting"]) for one in shown["partitions"]}
    assert found == {(pair.topic, 0): (100, 0), (pair.topic, 1): (100, 0), (late, 0): (-1, 1)}
    assert f"topic {late} has no copy at west, and stays behind" in shown["notices"]
    why = f"reads {late}, which has no copy at west"
    assert shown["withoutPlace"] == [{"group": group, "why": why}, {"group": only, "why": why}]
    # It stays behind where that is allowed, and so does who reads it there.
    allowed = "--leave-behind", 1, "--without-group", group, "--without-group", only
    assert pair.over("--yes", *allowed).code == 0
    assert (offsets_of(pair.west, group), offsets_of(pair.west, only)) == ({(pair.topic, 0): 40}, {})


def test_what_is_left_out_of_copies_is_left_out_of_what_is_not_copied(make: MakePair) -> None:
    pair = make("auto", "heartbeats", "excluded", "gone", "anew")
    excluded, gone, anew = map(pair.other, ("excluded", "gone", "anew"))
    group = pair.group("a")
    leave_behind(pair.east, group, {(pair.topic, 0): 40, (excluded, 0): 30})
    # All of these are full, and their copies will never be: a flow that takes no more of them, or cannot.
    for number in range(2):
        write(pair.east, pair.other("heartbeats"), ["tick"], partition=number)
        write(pair.east, excluded, ["more"], partition=number)
    delete(pair.east, gone)
    pair.file.write_text(pair.file.read_text().replace("[.].+']", f"[.].+'], exclude: [{excluded}]"))
    shown = pair.over("--dry-run", "--format", "json").json["plan"]
    assert {(one["topic"], one["waiting"]) for one in shown["partitions"]} == {
        (pair.topic, 0),
        (gone, 0),
        (anew, 0),
    }
    assert (
        f"topic {gone} does not exist at east any more: its copy has the records that were copied" in shown["notices"]
    )
    out = f"the flow takes the original of {excluded} no longer: that copy stays as it is, as do its readers"
    assert out in shown["notices"]
    assert [(one["topic"], one["toOffset"]) for one in shown["groups"]] == [(pair.topic, 40)]
    # The copy of the former topic has more records than this one, and none of them.
    delete(pair.east, anew)
    create(pair.east, anew, 2)
    write(pair.east, anew, ["of another topic"])
    said = pair.over("--yes", "--until-caught-up", "--patience", 1)
    assert (said.code, "[AB707]" in said.err, pair.phase) == (1, True, None), said
    assert f"1 record is not copied (1 of {anew})" in said.err
    delete(pair.east, anew)
    done = pair.over("--yes", "--until-caught-up")
    assert (done.code, pair.phase) == (0, "over"), done
    assert offsets_of(pair.west, group) == {(pair.topic, 0): 40}


def test_a_flow_that_was_asked_to_end_does_not_catch_up_any_more(pair: Pair) -> None:
    write(pair.east, pair.topic, ["late"])
    begun = leaving(pair)
    begun.begin()
    begun.close()
    said = pair.over("--yes", "--until-caught-up")
    assert (said.code, "[AB707]" in said.err, pair.phase) == (1, True, "ending"), said
    assert "1 record is not copied" in said.err
    assert "`anabranch failback` cancels or reverts the failover" in said.err
    assert pair.over("--yes", "--leave-behind", 1).code == 0
    # The copy has as many records as the original by now, and still not the one that never crossed.
    write(pair.west, pair.topic, ["new"])
    again = pair.over("--yes", "--until-caught-up", "--format", "json")
    assert (again.code, "[AB707]" in again.err, pair.phase) == (1, True, "over"), again
    assert pair.over("--dry-run", "--format", "json").json["plan"]["recordsNotCopied"] == 1


def test_a_run_whose_clock_is_behind_ours_is_waited_for(pair: Pair) -> None:
    over = threading.Event()
    flow = pair.topology.flows[0]

    def speak() -> None:
        writer = StatusWriter(declared("west", pair.west), pair.name)
        word = replace(TaskStatus.of_process(flow, "slow-clock", ""), task=0, tasks=1)
        while not over.wait(0.2):
            writer.post_last(replace(word, time=time.time() - 60))
        writer.post_last(replace(word, time=time.time() - 60, stopped=True))

    with ThreadPoolExecutor(1) as pool:
        speaking = pool.submit(speak)
        try:
            late = pair.over("--yes", "--patience", 7)
        finally:
            over.set()
        speaking.result()
    assert (late.code, "[AB702]" in late.err, "slow-clock" in late.err, pair.phase) == (1, True, True, "ending"), late
    assert pair.over("--yes").code == 0


def test_who_is_a_member_of_the_flows_group_is_waited_for_though_silent(pair: Pair) -> None:
    with member_of(pair.west, lease_group(pair.name, "over"), [pair.topic]):
        late = pair.over("--yes", "--patience", 2)
    assert (late.code, "[AB702]" in late.err, pair.phase) == (1, True, "ending"), late
    assert f"in group {lease_group(pair.name, 'over')}" in late.err
    assert pair.over("--yes").code == 0


def test_what_was_made_while_the_plan_was_read_is_cut_and_its_readers_move(pair: Pair) -> None:
    one = leaving(pair)
    try:
        one.plan()
        for cluster in (pair.east, pair.west):
            grow(cluster, pair.topic, 3)
        write(pair.east, pair.topic, ["in a new one"], partition=2)
        pair.copy()
        group = pair.group("new")
        leave_behind(pair.east, group, {(pair.topic, 2): 1})
        state = one.cut(one.begin())
        assert state.cuts[pair.topic].ends[2][0] >= 1, state
        assert len(state.cuts[pair.topic].ends) == 3
        found = one.carried(one.crossings())
        assert [(each.group, each.partition, each.to_offset) for each in found] == [(group, 2, 1)]
        assert one.move(state, found).count == 1
    finally:
        one.close()
    assert offsets_of(pair.west, group) == {(pair.topic, 2): 1}


def test_who_was_not_moved_yet_is_taken_back_and_who_was_is_named(pair: Pair) -> None:
    group, log = pair.group("a"), (pair.topic, 0)
    # Taken back at the source for a replay, and further at the target since an earlier stay.
    leave_behind(pair.east, group, {log: 20})
    leave_behind(pair.west, group, {log: 80})
    with member_of(pair.west, group, [pair.topic]):
        busy = pair.over("--yes")
    assert (busy.code, "[AB626]" in busy.err, pair.phase) == (1, True, "over"), busy
    again = pair.over("--yes", "--format", "json")
    assert (again.code, again.json["committed"], again.json["further"]) == (0, 1, []), again
    assert offsets_of(pair.west, group) == {log: 20}
    # Now it may have read on there, and does.
    leave_behind(pair.west, group, {log: 60})
    assert "left as it is: it stands further at west" in " ".join(pair.over("--dry-run").out.split())
    once_more = pair.over("--yes", "--format", "json")
    assert (once_more.code, offsets_of(pair.west, group)) == (0, {log: 60}), once_more
    assert [(one["group"], one["before"], one["toOffset"]) for one in once_more.json["further"]] == [(group, 60, 20)]
    assert f"group {group}: {pair.topic}/0 stays at 60 at west" in once_more.err
    # What was moved is forgotten with the failover.
    assert pair.back("--yes").code == 0
    leave_behind(pair.east, group, {log: 10})
    assert pair.over("--yes").code == 0
    assert offsets_of(pair.west, group) == {log: 10}


def test_who_is_moved_late_reads_what_came_behind_the_cut(pair: Pair) -> None:
    group, log = pair.group("a"), (pair.topic, 0)
    write(pair.east, pair.topic, [f"late-{number}" for number in range(10)])
    leave_behind(pair.east, group, {log: 110})
    one = leaving(pair)
    one.cut(one.begin())
    one.close()
    # It died here. Of the same offsets the source has other records.
    write(pair.west, pair.topic, [f"new-{number}" for number in range(20)])
    done = pair.over("--yes")
    assert (done.code, offsets_of(pair.west, group)) == (0, {log: 100}), done


def test_who_cannot_be_moved_is_named(pair: Pair) -> None:
    share = pair.group("share")
    join_share_group(pair.east, share, pair.topic)
    leave_behind(pair.east, pair.group("a"), {(pair.topic, 0): 40})
    shown = pair.over("--dry-run", "--format", "json")
    (named,) = shown.json["plan"]["withoutPlace"]
    assert (shown.code, named["group"]) == (4, share), shown
    assert "is not moved: it is no group of consumers: share groups keep their progress elsewhere" in named["why"]
    unknown = pair.over("--yes", "--source-lost", "--group", "nobody")
    assert (unknown.code, pair.phase) == (1, None), unknown
    assert "[AB640]" in unknown.err


@pytest.mark.parametrize("offsets", ["auto", "translated"])
def test_a_checkpoint_that_was_ahead_of_the_copy_counts_as_far_as_the_copy_is_now(make: MakePair, offsets: str) -> None:
    pair = make(offsets)
    group, log = pair.group("a"), (pair.topic, 0)
    write(pair.east, pair.topic, [f"late-{number}" for number in range(10)])
    leave_behind(pair.east, group, {log: 105})
    topology = pair.topology
    flow = topology.flows[0]
    rounds = Rounds(topology.clusters["east"], topology.clusters["west"], flow, topology.name, topology.aliases)
    rounds.round()
    rounds.close()
    pair.copy()
    pair.write("127.0.0.1:1")
    lost = pair.over("--yes", "--source-lost", "--leave-behind", "unknown", "--format", "json")
    assert (lost.code, lost.json["committed"]) == (0, 1), lost
    at_west = offsets_of(pair.west, group)[log]
    assert read_from(pair.west, pair.topic, at_west) == [f"late-{number}" for number in range(5, 10)]
