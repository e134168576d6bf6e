"""What a failover may leave behind is said on the command line, and what it would leave is shown, with its numbers."""

from __future__ import annotations

from dataclasses import replace

import pytest
import typer

from reconciler.cli.failover import allowance
from reconciler.failover import objections
from reconciler.failover.groups import group_positions
from reconciler.model.base.errors import Problem
from reconciler.model.offsets.committed import Committed, LogBounds
from reconciler.model.recorded.failover import Allowance, Carried, Crossing, FailoverPlan, WithoutPlace
from reconciler.report.failover import failover_json, failover_lines

ORDERS = Crossing("orders", "east.orders", 0, "identical", 5, 5, 32_321, 32_316)
OPEN = replace(ORDERS, topic="bills", source_end=15, waiting=0, held=10, held_by="an open transaction of producer 7")
AWAY = Crossing("away", "east.away", 2, "identical", 5, 5)
WHERE = "cluster west, flow over"


def refusals(*found: Crossing, ended: bool = False, **allowed: int | None) -> list[Problem]:
    records = allowed.get("records", 0)
    return objections.left_behind(found, WHERE, "east", Allowance(records), ended=ended)


def test_records_that_stay_behind_need_their_number() -> None:
    (problem,) = refusals(ORDERS)
    assert (problem.code, problem.where) == ("AB729", WHERE)
    assert problem.message == "32,316 records of east would be left behind: consumers at the target do not get them"
    assert problem.remedy.startswith("`--leave-behind 32316` leaves them")
    (more,) = refusals(ORDERS, records=30_000)
    assert more.message.endswith("do not get them, more than the 30,000 that may be left")
    assert refusals(ORDERS, records=32_316) == refusals(ORDERS, records=40_000) == []
    assert refusals(replace(ORDERS, waiting=0)) == refusals() == []


def test_records_behind_open_transactions_count_and_are_named() -> None:
    count, held = refusals(ORDERS, OPEN)
    assert (count.code, "32,326 records" in count.message) == ("AB729", True)
    assert (held.code, held.where) == ("AB731", f"{WHERE}, topic bills, partition 0")
    assert held.message.startswith("10 of its records stand behind an open transaction of producer 7: ")
    assert refusals(ORDERS, OPEN, records=32_326) == []
    many = [replace(OPEN, partition=number) for number in range(13)]
    assert refusals(*many)[-1].message == "30 records of 3 more partitions wait for transactions too"


def test_a_number_that_is_not_known_is_to_be_allowed_as_such() -> None:
    (problem,) = refusals(ORDERS, AWAY, records=1_000_000)
    assert problem.message == "how many records of east would be left behind is unknown (away/2)"
    assert "--leave-behind unknown" in problem.remedy
    assert refusals(ORDERS, AWAY, records=None) == []
    # Where it is known, nothing was seen that is allowed by that; once the flow has ended it was.
    assert [one.code for one in refusals(ORDERS, records=None)] == ["AB729"]
    assert refusals(ORDERS, ended=True, records=None) == []
    assert "`anabranch failback` cancels the failover" in refusals(ORDERS, ended=True)[0].message


def test_groups_without_a_place_need_their_names() -> None:
    found = [WithoutPlace("a b", f"reads t{number}, which has no copy at west") for number in range(5)]
    found += [WithoutPlace("team+app", "is a share group"), WithoutPlace("app-1", "is a share group")]
    problems = list(objections.without_place(found, WHERE, "west", Allowance()))
    assert [(one.code, one.where) for one in problems] == [
        ("AB730", f"{WHERE}, group a b"),
        ("AB730", f"{WHERE}, group app-1"),
        ("AB730", f"{WHERE}, group team+app"),
    ]
    assert problems[0].message.endswith("reads t2, which has no copy at west, and 2 more such positions")
    assert problems[0].remedy.startswith("`--without-group 'a b'` goes on without it")
    # A name is that group, whatever it means as an expression.
    for groups in (("a b", "team+app", "app-.*"), ("all",)):
        assert list(objections.without_place(found, WHERE, "west", Allowance(0, groups))) == []


def test_what_is_allowed_is_read_as_the_plan_shows_it() -> None:
    assert allowance("32,316", None) == allowance("32316", []) == Allowance(32_316)
    assert allowance("unknown", ["a", "b.*"]) == Allowance(None, ("a", "b.*"))
    assert allowance(None, None) == Allowance()
    for wrong in ("", "many", "-1", "1.5", "all"):
        with pytest.raises(typer.BadParameter) as error:
            allowance(wrong, None)
        assert "expected a number of records, or unknown" in str(error.value)


def plan(*groups: Carried, found: tuple[Crossing, ...] = (), without: tuple[WithoutPlace, ...] = ()) -> FailoverPlan:
    return FailoverPlan("over", "east", "west", None, False, found, groups, (), without)


def said(one: FailoverPlan) -> list[str]:
    return [" ".join(line.plain.split()) for line in failover_lines(one)]


def test_a_plan_shows_where_groups_stand_now_and_how_far_they_go_back() -> None:
    moved = Carried("moved", "h-x", 0, 600, 400, "src.h-x", 600, 900)
    kept = replace(moved, group="kept", stays=True, why="left as it is: it stands further at west")
    new = replace(moved, group="new", before=None)
    lines = said(plan(moved, kept, new))
    assert "group at east offset lag at west now goes on at" in lines
    assert "moved h-x/0 600 400 src.h-x/0 900 600" in lines
    assert "new h-x/0 600 400 src.h-x/0 - 600" in lines
    back = [line for line in lines if "goes back" in line]
    assert back == [
        "! group moved goes back by 300 in src.h-x/0: its offset at west is 900, and it reads again from 600 on; "
        "--only-forward keeps it"
    ]
    # What is left where it is, is not committed whatever is asked.
    assert group_positions.moves_of([kept], only_forward=True) == {}
    assert group_positions.further([replace(kept, stays=False)]) != []


def test_a_plan_names_what_is_held_back_and_who_has_no_place() -> None:
    shown = plan(found=(ORDERS, OPEN), without=(WithoutPlace("a", "reads late"), WithoutPlace("all", "no checkpoints")))
    lines = said(shown)
    held = "! 10 records of bills/0 stand behind an open transaction of producer 7: they are not copied before it ends"
    assert held in lines
    assert "32,326 records of east would be left behind: consumers at west do not get them" in lines
    assert [line for line in lines if line.startswith("! group a") or "checkpoints" in line] == [
        "! group a: reads late",
        "! no checkpoints",
    ]
    told = failover_json(shown)
    assert (told["recordsNotCopied"], told["recordsHeldBack"]) == (32_316, 10)
    assert told["withoutPlace"][0] == {"group": "a", "why": "reads late"}
    assert told["partitions"][1]["heldBy"] == "an open transaction of producer 7"


def test_a_lag_counts_what_is_in_the_log() -> None:
    assert Committed("low", "half", 0, 10, bounds=LogBounds(55, 100, 100)).lag == 45
    assert Committed("in", "half", 0, 60, bounds=LogBounds(55, 100, 100)).lag == 40
    assert Committed("behind", "half", 0, 120, bounds=LogBounds(55, 100, 100)).lag == -20
