"""`failover` and `failback` on real brokers without Spark: the tasks that copy run in threads of this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.checkpoints.groups.groups import Groups
from reconciler.checkpoints.service.rounds import Rounds
from reconciler.failover import failback
from reconciler.failover.topics.recreation import recreate
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.driver.driver import new_run
from reconciler.state.copies import Copies
from tests.support.clusters.consumers import leave_behind, member_of, offsets_of
from tests.support.clusters.kafka import create, declared, delete
from tests.support.commands.failing_over import MODES, MOSTLY_TRANSLATED, MakePair, named, read_from, write
from tests.support.replicator.copying import Running, log_end


@pytest.mark.parametrize("offsets", MODES)
def test_groups_go_over_and_come_back_and_the_flow_goes_on(make: MakePair, offsets: str) -> None:
    pair = make(offsets)
    group, log = pair.group("a"), (pair.topic, 0)
    leave_behind(pair.east, group, {log: 40, (pair.topic, 1): 100})
    shown = pair.over("--dry-run", "--format", "json")
    assert (shown.code, shown.json["plan"]["recordsNotCopied"], pair.phase) == (0, 0, None)
    assert [(one["group"], one["offset"], one["lag"]) for one in shown.json["plan"]["groups"]] == [
        (group, 40, 60),
        (group, 100, 0),
    ]
    over = pair.over("--yes")
    assert (over.code, pair.phase) == (0, "over"), over
    at_west = offsets_of(pair.west, group)
    assert at_west[log] == 40
    assert at_west[pair.topic, 1] == log_end(declared("west", pair.west), pair.topic, 1)

    # The same again changes nothing: who has read on at west stays where they are.
    leave_behind(pair.west, group, {log: 60})
    again = pair.over("--yes")
    assert (again.code, offsets_of(pair.west, group)[log]) == (0, 60), again

    write(pair.west, pair.topic, [f"new-{number}" for number in range(50)])
    end = log_end(declared("west", pair.west), pair.topic)
    leave_behind(pair.west, group, {log: end - 31})
    back = pair.back("--yes", "--format", "json")
    assert (back.code, pair.phase) == (0, None), back
    assert [one["new"] for one in back.json["plan"]["topics"]] == [50]
    # 30 records and the end of the transaction are behind it at west, and as much, however it is written, at east.
    assert read_from(pair.east, pair.topic, offsets_of(pair.east, group)[log]) == [f"new-{n}" for n in range(20, 50)]
    write(pair.east, pair.topic, ["more"])
    pair.copy()
    assert read_from(pair.west, pair.topic, end) == ["more"]


@pytest.mark.parametrize("offsets", MOSTLY_TRANSLATED)
def test_over_again_before_anything_new_crosses(make: MakePair, offsets: str) -> None:
    pair = make(offsets)
    group, log = pair.group("a"), (pair.topic, 0)
    leave_behind(pair.east, group, {log: 40})
    assert pair.over("--yes").code == 0
    write(pair.west, pair.topic, [f"new-{number}" for number in range(50)])
    end = log_end(declared("west", pair.west), pair.topic)
    leave_behind(pair.west, group, {log: end - 21})
    assert pair.back("--yes").code == 0
    # No record tells yet where what came back stands on both sides.
    over = pair.over("--yes")
    assert over.code == 0, over
    at_west = offsets_of(pair.west, group)[log]
    assert read_from(pair.west, pair.topic, at_west) == [f"new-{n}" for n in range(30, 50)], (at_west, end)


def test_who_stood_further_at_the_source_is_not_taken_back(make: MakePair) -> None:
    pair = make("auto")
    group, log = pair.group("a"), (pair.topic, 0)
    write(pair.east, pair.topic, [f"late-{number}" for number in range(20)])
    leave_behind(pair.east, group, {log: 110})
    over = pair.over("--yes", "--leave-behind", 20)
    assert (over.code, offsets_of(pair.west, group)) == (0, {log: 100}), over
    back = pair.back("--yes")
    assert (back.code, offsets_of(pair.east, group)) == (0, {log: 110}), back


@pytest.mark.parametrize("offsets", MOSTLY_TRANSLATED)
def test_a_rebuild_that_breaks_off_is_finished(
    make: MakePair, offsets: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = make(offsets)
    group, log = pair.group("a"), (pair.topic, 0)
    leave_behind(pair.east, group, {log: 40})
    write(pair.east, pair.topic, ["lost"])
    assert pair.over("--yes", "--leave-behind", 1).code == 0
    write(pair.west, pair.topic, ["new"])

    def breaks_off(*_arguments: object) -> None:
        raise EnvironmentFault(Problem("AB726", "cluster east", "it breaks off", ""))

    monkeypatch.setattr(failback, "recreate", breaks_off)
    broken = pair.back("--yes", "--rebuild", pair.topic, "--export", tmp_path / "kept")
    assert (broken.code, "[AB726]" in broken.err, pair.phase) == (1, True, "returning"), broken
    monkeypatch.setattr(failback, "recreate", recreate)
    # What is still there is exported once more, elsewhere.
    again = pair.back("--yes")
    assert (again.code, "[AB708]" in again.err, pair.phase) == (1, True, "returning"), again
    done = pair.back("--yes", "--export", tmp_path / "once-more")
    assert (done.code, pair.phase) == (0, None), done
    assert read_from(pair.east, pair.topic, 0) == read_from(pair.west, pair.topic, 0)
    assert len((tmp_path / "once-more" / f"{pair.topic}.jsonl").read_text().splitlines()) == 1
    write(pair.east, pair.topic, ["more"])
    pair.copy()
    assert read_from(pair.west, pair.topic, 0)[-2:] == ["new", "more"]


def test_what_is_gone_is_named_and_left_out(make: MakePair) -> None:
    pair = make("auto")
    assert pair.over("--yes").code == 0
    delete(pair.east, pair.topic)
    back = pair.back("--yes")
    assert (back.code, pair.phase) == (0, None), back
    assert f"topic {pair.topic} does not exist at east" in back.out
    assert "no original exists to copy back into" in back.out


def test_the_sources_of_other_flows_need_not_answer(make: MakePair) -> None:
    pair = make("auto")
    other = '  - {from: gone, to: west, topics: {include: ["of-others"]}}\n'
    text = pair.file.read_text().replace("flows:\n", '  gone: {bootstrap: ["127.0.0.1:1"]}\nflows:\n') + other
    pair.file.write_text(text)
    for command in (pair.over, pair.back):
        for pattern in ("(", "*"):
            refused = command("--yes", "--group", pattern)
            assert (refused.code, f"found {pattern}" in refused.err) == (2, True), refused
        assert command("--yes").code == 0


def test_a_copy_that_another_flow_fills_as_well_is_not_cut(make: MakePair) -> None:
    pair = make("translated")
    other = '  - {name: beside, from: gone, to: west, policy: {type: identity}, topics: {include: ["of-others"]}}\n'
    clusters = '  gone: {bootstrap: ["127.0.0.1:1"]}\nflows:\n'
    pair.file.write_text(pair.file.read_text().replace("flows:\n", clusters) + other)
    groups = Groups(declared("west", pair.west))
    groups.refresh()
    target_id = groups.ids([pair.topic])[pair.topic]
    groups.close()
    copies = Copies(declared("west", pair.west), pair.name)
    try:
        copies.refresh()
        # What is only announced, or stood in a topic that was deleted, is in nobody's way.
        copies.put("beside", pair.topic, 0, CopyRecord("another", target_id, is_begun=False))
        copies.put("beside", pair.topic, 1, CopyRecord("another", "of-former-days"))
        assert pair.over("--dry-run").code == 0
        copies.put("beside", pair.topic, 1, CopyRecord("another", target_id))
        copies.put("undeclared", pair.topic, 0, CopyRecord("another", target_id))
    finally:
        copies.close()
    refused = pair.over("--yes")
    assert (refused.code, refused.err.count("[AB716]"), pair.phase) == (4, 1, None), refused
    assert f"topic {pair.topic}: it is a copy of flow over, and beside fills it as well" in " ".join(
        refused.err.split()
    )


@pytest.mark.parametrize("offsets", MOSTLY_TRANSLATED)
def test_a_failback_whose_source_is_lost_again_is_broken_off(
    make: MakePair, offsets: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = make(offsets)
    assert pair.over("--yes").code == 0
    write(pair.west, pair.topic, named("new", 10))

    def breaks_off(*_arguments: object) -> None:
        raise EnvironmentFault(Problem("AB726", "cluster east", "it breaks off", ""))

    with monkeypatch.context() as patch:
        patch.setattr(failback.Failback, "move", breaks_off)
        assert pair.back("--yes").code == 1
    refused = pair.over("--yes")
    assert ("[AB701]" in refused.err, pair.phase) == (True, "returning")
    pair.write("127.0.0.1:1")
    gone = pair.over("--yes", "--source-lost", "--leave-behind", "unknown", "--without-group", "all")
    assert gone.code == 0, gone
    assert "there are no checkpoints at west of the flow's topics, so no group is moved" in gone.out
    write(pair.west, pair.topic, named("more", 10))
    pair.write(pair.east.bootstrap)
    back = pair.back("--yes")
    assert (back.code, pair.phase) == (0, None), back
    for number in range(2):
        assert read_from(pair.east, pair.topic, number) == read_from(pair.west, pair.topic, number)
    assert read_from(pair.east, pair.topic, 0)[-20:] == named("new", 10) + named("more", 10)


@pytest.mark.parametrize("way", ["made again", "left out"])
def test_what_came_to_the_copy_of_what_is_gone_is_not_forgotten(make: MakePair, way: str) -> None:
    pair = make("auto")
    assert pair.over("--yes").code == 0
    # And the marker of their transaction.
    write(pair.west, pair.topic, named("new", 10))
    assert pair.back("--dry-run", "--leave-out", pair.topic).err.count("[AB704]") == 1, "it is there"
    delete(pair.east, pair.topic)
    for options in ("--dry-run",), ("--yes",), ("--yes", "--leave-out", f"{pair.topic}-other"):
        refused = pair.back(*options)
        assert (refused.code, "[AB715]" in refused.err, pair.phase) == (1, True, "over"), refused
        assert "has 11 new offsets" in " ".join(refused.err.split())
    if way == "made again":
        create(pair.east, pair.topic, 2)
        assert pair.back("--yes").code == 0
        for number in range(2):
            assert read_from(pair.east, pair.topic, number) == read_from(pair.west, pair.topic, number)
    else:
        assert pair.back("--dry-run", "--leave-out", "nothing", "--leave-out", pair.topic).err.count("[AB704]") == 1
        back = pair.back("--yes", "--leave-out", pair.topic)
        assert back.code == 0, back
        assert f"{pair.topic} is not copied back, and its 11 new offsets stay there" in back.out
    assert pair.phase is None


@pytest.mark.parametrize("offsets", MOSTLY_TRANSLATED)
def test_what_diverged_is_counted_kept_and_made_anew(make: MakePair, offsets: str, tmp_path: Path) -> None:
    pair = make(offsets)
    group, log = pair.group("a"), (pair.topic, 0)
    leave_behind(pair.east, group, {log: 40})
    write(pair.east, pair.topic, [f"lost-{number}" for number in range(7)])
    shown = pair.over("--dry-run", "--format", "json")
    assert shown.json["plan"]["recordsNotCopied"] == 7
    assert pair.over("--yes", "--leave-behind", "7").code == 0
    # Nothing has come to the copy yet: what never crossed would cross when the flow goes on.
    assert "7" in pair.back("--dry-run").out
    write(pair.west, pair.topic, [f"new-{number}" for number in range(5)])
    refused = pair.back("--yes")
    assert (refused.code, "[AB705]" in refused.err, pair.phase) == (4, True, "over"), refused
    assert "has 7 records that were never copied" in refused.err
    nowhere = pair.back("--yes", "--rebuild", pair.topic)
    assert (nowhere.code, "[AB708]" in nowhere.err, pair.phase) == (1, True, "over"), nowhere
    before = log_end(declared("east", pair.east), pair.topic)
    assert log_end(declared("east", pair.east), pair.topic) == before

    kept = tmp_path / "kept"
    end = log_end(declared("west", pair.west), pair.topic)
    leave_behind(pair.west, group, {log: 101})
    back = pair.back("--yes", "--rebuild", pair.topic, "--export", kept)
    assert (back.code, pair.phase) == (0, None), back
    lines = [json.loads(line) for line in (kept / f"{pair.topic}.jsonl").read_text().splitlines()]
    assert len(lines) == 7
    assert log_end(declared("east", pair.east), pair.topic) == end
    everything = read_from(pair.west, pair.topic, 0)
    assert read_from(pair.east, pair.topic, 0) == everything
    assert everything[-5:] == [f"new-{number}" for number in range(5)]
    at_east = offsets_of(pair.east, group)[log]
    behind = read_from(pair.west, pair.topic, 101)
    assert read_from(pair.east, pair.topic, at_east) == behind
    write(pair.east, pair.topic, ["more"])
    pair.copy()
    assert read_from(pair.west, pair.topic, end) == ["more"]
    # And over once more: what was copied back stands at both sides.
    leave_behind(pair.east, group, {log: at_east})
    assert pair.over("--yes").code == 0
    assert read_from(pair.west, pair.topic, offsets_of(pair.west, group)[log]) == [*behind, "more"]


def test_without_the_source_the_last_checkpoints_tell(make: MakePair) -> None:
    pair = make("auto")
    group = pair.group("a")
    leave_behind(pair.east, group, {(pair.topic, 0): 40, (pair.topic, 1): 77})
    topology = pair.topology
    flow = topology.flows[0]
    rounds = Rounds(topology.clusters["east"], topology.clusters["west"], flow, topology.name, topology.aliases)
    rounds.round()
    rounds.close()
    pair.write("127.0.0.1:1")
    unreachable = pair.over("--yes")
    assert (unreachable.code, "--source-lost" in unreachable.err, pair.phase) == (6, True, None), unreachable
    refused = pair.over("--yes", "--source-lost")
    assert (refused.code, "[AB729]" in refused.err, pair.phase) == (4, True, None), refused
    lost = pair.over("--yes", "--source-lost", "--leave-behind", "unknown", "--format", "json")
    assert (lost.code, lost.json["committed"], lost.json["plan"]["recordsNotCopied"]) == (0, 2, None), lost
    assert offsets_of(pair.west, group) == {(pair.topic, 0): 40, (pair.topic, 1): 77}
    assert pair.phase == "over"


def test_without_the_source_and_checkpoints_nobody_is_moved_and_the_flow_is_over(make: MakePair) -> None:
    pair = make("auto")
    pair.write("127.0.0.1:1")
    refused = pair.over("--yes", "--source-lost", "--leave-behind", "unknown")
    assert (refused.code, "[AB730]" in refused.err, pair.phase) == (4, True, None), refused
    allowed = "--leave-behind", "unknown", "--without-group", "all"
    lost = pair.over("--yes", "--source-lost", *allowed, "--format", "json")
    assert (lost.code, lost.json["committed"], pair.phase) == (0, 0, "over"), lost


def test_a_group_that_has_members_there_is_left_and_told(make: MakePair) -> None:
    pair = make("auto")
    busy, idle = pair.group("busy"), pair.group("idle")
    for group in (busy, idle):
        leave_behind(pair.east, group, {(pair.topic, 0): 40})
    with member_of(pair.west, busy, [pair.topic]):
        over = pair.over("--yes")
    assert (over.code, "[AB626]" in over.err, pair.phase) == (1, True, "over"), over
    assert offsets_of(pair.west, idle) == {(pair.topic, 0): 40}
    assert offsets_of(pair.west, busy) == {}
    again = pair.over("--yes", "--group", busy)
    assert (again.code, offsets_of(pair.west, busy)) == (0, {(pair.topic, 0): 40}), again


def test_what_cannot_be_done_is_refused_and_changes_nothing(make: MakePair, tmp_path: Path) -> None:
    pair = make("auto")
    for said, code, words in (
        (pair.back("--yes"), 4, "[AB703]"),
        (pair.run("failover", "--flow", "other", "--yes"), 2, "no flow other is declared"),
        (pair.over(), 2, "--dry-run shows what would be done"),
        (pair.over("--yes", "--until-caught-up", "--source-lost"), 2, "cannot be caught up with"),
        (pair.over("--yes", "--group", "nobody"), 1, "[AB625]"),
        (pair.back("--yes", "--export", tmp_path, "--export-topic", "x"), 2, "files or to a topic"),
    ):
        assert (said.code, words in said.err, pair.phase) == (code, True, None), said
    assert pair.over("--yes").code == 0
    for name in (pair.topic, "other"):
        said = pair.back("--yes", "--rebuild", name)
        assert (said.code, "[AB704]" in said.err, pair.phase) == (1, True, "over"), said
    # One that has copied nothing has nobody to move.
    facts = pair.file.read_text().replace("name: over", "name: fresh")
    pair.file.write_text(facts)
    fresh = pair.run("failover", "--flow", "fresh", "--yes")
    assert (fresh.code, "[AB700]" in fresh.err) == (1, True), fresh


def test_a_failover_that_has_moved_nobody_is_called_off(make: MakePair) -> None:
    pair = make("auto")
    group = pair.group("a")
    leave_behind(pair.east, group, {(pair.topic, 0): 40})
    topology = pair.topology
    with Running(FlowSpec.compile(topology, topology.flows[0], new_run())) as running:
        running.wait()
        # A task hears of its process, which here is none that looks for failovers.
        late = pair.over("--yes", "--patience", 2)
        assert (late.code, "[AB702]" in late.err, pair.phase) == (1, True, "ending"), late
    assert offsets_of(pair.west, group) == {}
    shown = pair.back("--dry-run", "--format", "json").json
    assert (shown["plan"]["phase"], shown["plan"]["groups"], shown["plan"]["notices"]) == ("ending", [], []), shown
    back = pair.back("--yes", "--format", "json")
    assert (back.code, "called off" in back.err, pair.phase) == (0, True, None), back
    assert (back.json["committed"], back.json["problems"]) == (0, []), back


def test_records_that_wait_are_waited_for(make: MakePair) -> None:
    pair = make("auto")
    write(pair.east, pair.topic, ["late"])
    said = pair.over("--yes", "--until-caught-up", "--patience", 1)
    assert (said.code, "[AB707]" in said.err, pair.phase) == (1, True, None), said
    pair.copy()
    assert pair.over("--yes", "--until-caught-up").code == 0
