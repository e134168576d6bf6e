"""What a failover would lose or leave: it needs its number or its name, before anything is changed."""

from __future__ import annotations

import pytest

from reconciler.failover.failover import Failover
from tests.support.clusters.consumers import join_share_group, leave_behind, offsets_of
from tests.support.clusters.kafka import create, declared, delete_records
from tests.support.commands.failing_over import MODES, MakePair, ends_of, named, open_transaction, read_from, write
from tests.support.replicator.copying import log_end


def test_nothing_is_left_that_was_not_named(make: MakePair) -> None:
    pair = make("translated")
    late, group, only = pair.other("late"), pair.group("a"), pair.group("only")
    log = pair.topic, 0
    leave_behind(pair.east, group, {log: 40})
    leave_behind(pair.west, group, {log: 80})
    write(pair.east, pair.topic, named("lost", 7))
    create(pair.east, late, 1)
    write(pair.east, late, ["in a new topic"])
    leave_behind(pair.east, only, {(late, 0): 0})
    end = log_end(declared("east", pair.east), pair.topic, 1)
    with open_transaction(pair.east, pair.topic, 1, 10) as name:
        shown = pair.over("--dry-run", "--format", "json")
        plan = shown.json["plan"]
        assert (shown.code, plan["recordsNotCopied"], plan["recordsHeldBack"]) == (4, 8, 10)
        (held,) = (one for one in plan["partitions"] if one["held"])
        assert (held["partition"], held["sourceEnd"]) == (1, end + 10)
        assert held["heldBy"].endswith(f", transactional id {name}")
        assert [one["group"] for one in plan["withoutPlace"]] == [only]
        text = " ".join(pair.over("--dry-run").out.split())
        assert f"group {group} goes back by 40 in {pair.topic}/0: its offset at west is 80" in text
        assert f"10 records of {pair.topic}/1 stand behind an open transaction of producer" in text
        refused = pair.over("--yes")
        assert refused.code == 4, refused
        assert "18 records of east would be left behind" in refused.err
        assert [refused.err.count(code) for code in ("[AB729]", "[AB730]", "[AB731]")] == [1, 1, 1]
        for options in (
            ("--leave-behind", 17, "--without-group", only),
            ("--leave-behind", "unknown", "--without-group", only),
            ("--leave-behind", 18),
            ("--leave-behind", 18, "--without-group", group),
        ):
            assert pair.over("--yes", *options).code == 4, options
        # All but the open transaction may be left, so it is waited for.
        waited = pair.over("--yes", "--until-caught-up", "--patience", 1, "--leave-behind", 17, "--without-group", only)
        assert (waited.code, "[AB707]" in waited.err, name in waited.err) == (1, True, True), waited
        assert (pair.phase, offsets_of(pair.west, group)) == (None, {log: 80})
    done = pair.over("--yes", "--only-forward", "--leave-behind", 18, "--without-group", only)
    assert (done.code, pair.phase) == (0, "over"), done
    assert (offsets_of(pair.west, group), offsets_of(pair.west, only)) == ({log: 80}, {})
    # A decision that was made is not asked for again; who is without a place is.
    assert pair.over("--yes").code == 4
    assert pair.over("--yes", "--without-group", "all").code == 0


def test_what_comes_while_the_flow_ends_counts_as_well(make: MakePair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = make("auto")
    group, log = pair.group("a"), (pair.topic, 0)
    leave_behind(pair.east, group, {log: 40})
    whole = Failover.wait_until_ended

    def meanwhile(*arguments: object) -> None:
        write(pair.east, pair.topic, ["meanwhile"])
        whole(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Failover, "wait_until_ended", meanwhile)
        said = pair.over("--yes")
    assert (said.code, "[AB729]" in said.err, pair.phase) == (4, True, "ending"), said
    assert "1 record of east would be left behind" in said.err
    assert "the flow has ended, and no offsets were committed: `anabranch failback` cancels the failover" in said.err
    assert offsets_of(pair.west, group) == {}
    # It is a decision still: the same line is refused, and is not a way around it.
    assert (pair.over("--yes").code, pair.phase) == (4, "ending")
    assert pair.over("--yes", "--leave-behind", 1).code == 0
    assert offsets_of(pair.west, group) == {log: 40}
    # Back: who is at the source further than it would go on is shown, and kept if that is asked for.
    write(pair.west, pair.topic, named("new", 5))
    leave_behind(pair.west, group, {log: 60})
    with open_transaction(pair.west, pair.topic, 1, 3) as name:
        refused = pair.back("--yes")
        assert (refused.code, "[AB706]" in refused.err, name in refused.err, pair.phase) == (1, True, True, "over")
    # Who has read nothing of what came stays where it is further on, and who has goes to its exact place.
    new, share = pair.group("new"), pair.group("share")
    end = ends_of(pair)[0][1]
    for cluster, old_at, new_at in ((pair.east, 90, 101), (pair.west, 60, end + 1)):
        leave_behind(cluster, group, {log: old_at})
        leave_behind(cluster, new, {log: new_at})
    join_share_group(pair.west, share, pair.topic)
    shown = pair.back("--dry-run", "--format", "json")
    assert (shown.code, [one["group"] for one in shown.json["plan"]["withoutPlace"]]) == (4, [share]), shown
    found = {one["group"]: (one["before"], one["stays"], one["why"]) for one in shown.json["plan"]["groups"]}
    assert found[group] == (90, True, "left as it is: it stands further at east")
    assert found[new][:2] == (101, False)


@pytest.mark.parametrize("offsets", MODES)
def test_in_front_of_the_first_record_both_modes_say_the_same(make: MakePair, offsets: str) -> None:
    pair = make(offsets)
    group, log = pair.group("low"), (pair.topic, 0)
    leave_behind(pair.east, group, {log: 10})
    delete_records(pair.east, pair.topic, 55)
    (shown,) = pair.over("--dry-run", "--format", "json").json["plan"]["groups"]
    # The copy has what the group has not read: it reads it there.
    assert (shown["offset"], shown["lag"], shown["why"]) == (10, 45, "")
    assert len(read_from(pair.west, pair.topic, shown["toOffset"])) == 90
    delete_records(pair.west, pair.topic, 55)
    (shown,) = pair.over("--dry-run", "--format", "json").json["plan"]["groups"]
    assert shown["why"] == "offset 10 is deleted at east: it goes on at the first record"
    assert pair.over("--yes").code == 0
    at_west = offsets_of(pair.west, group)[log]
    assert read_from(pair.west, pair.topic, at_west) == read_from(pair.east, pair.topic, 55)
