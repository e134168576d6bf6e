"""Up to where copies of a flow that is failed over are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.partition.offset_metadata import OffsetMetadata
from reconciler.replicator.partition.shares import Place
from reconciler.verify.cut import CutPoint, Cuts, up_to
from reconciler.verify.origin import Origin
from reconciler.verify.resume import FlowState, Resume
from reconciler.verify.slices import SliceBounds
from reconciler.verify.survey import VerifyFilter
from tests.unit.plan.facts import flow

FLOW = flow("east", "west")
SPEC = FlowSpec("payments", "run", FLOW, Cluster("east", ("e:9092",)), Cluster("west", ("w:9092",)), ("east", "west"))
SINCE = 1_800_000_000.0
ORDERS = Place("orders", 0, "east.orders", "identical")


def values(*, phase: str = "over", anew: str = "", remote: str = "east.orders") -> list[dict[str, Any]]:
    of = {"topology": "payments", "flow": FLOW.name, "since": SINCE}
    cut = {"topic": "orders", "remote": remote, "mode": "identical", "ends": [[90, 100], [-1, 7]]}
    notes = [str(OffsetMetadata("s", "t")), str(OffsetMetadata("s", "t"))]
    return [
        {"kind": "failover", "phase": phase, "by": "ops@host"} | of,
        {"kind": "failover-cut", "handed": False, "anew": anew, "notes": notes} | cut | of,
    ]


def bounds(offsets: str = "translated", target_first: int = 0) -> SliceBounds:
    ends = (0, 500, target_first, 300)
    return SliceBounds("orders", 0, "east.orders", offsets, "s", "t", *ends, CopyRecord(None, None), copied_to=444)


def test_a_partition_is_compared_up_to_its_cut_and_one_line_says_so() -> None:
    cuts = Cuts(SPEC, values())
    assert cuts.at(ORDERS, "t") == CutPoint(90, 100)
    assert cuts.at(ORDERS, None) == CutPoint(90, 100), "brokers that have no ids"
    assert cuts.at(ORDERS._replace(partition=1), "t") == CutPoint(None, 7), "nothing was copied"
    assert cuts.at(ORDERS._replace(partition=2), "t") == CutPoint(None, 0), "it was added since"
    (notice,) = cuts.notices
    assert notice.code == "AB613"
    said = "failed over since 2027-01-15 08:00:00 UTC by ops@host: compared up to where its copies were cut"
    assert (notice.where, notice.message) == (f"flow {FLOW.name}", said)


@pytest.mark.parametrize("told", [[], values(phase="ending")])
def test_who_has_moved_nobody_is_compared_as_ever(told: list[dict[str, Any]]) -> None:
    cuts = Cuts(SPEC, told)
    assert (cuts.at(ORDERS, "t"), cuts.notices, cuts.made_anew(ORDERS)) == (None, (), None)


def test_a_cut_of_another_topic_says_nothing() -> None:
    assert Cuts(SPEC, values()).at(ORDERS, "made anew") is None
    assert Cuts(SPEC, values()).at(ORDERS._replace(topic="users"), "t") is None
    assert Cuts(SPEC, values(remote="other.orders")).at(ORDERS, "t") is None


def test_an_original_that_is_being_made_anew_is_not_compared() -> None:
    problem = Cuts(SPEC, values(phase="returning", anew="made")).made_anew(ORDERS)
    assert problem is not None
    assert (problem.code, problem.where) == ("AB609", "east orders")
    assert Cuts(SPEC, values(phase="returning")).made_anew(ORDERS) is None


def test_bounds_end_at_the_cut() -> None:
    assert up_to(bounds(), None) == bounds()
    one = up_to(bounds(), CutPoint(90, 100))
    assert (one.source_end, one.target_end, one.copied_to) == (500, 100, 90)
    assert up_to(bounds(), CutPoint(None, 100)).copied_to is None
    # The log may have lost its end, as after an unclean election.
    assert up_to(bounds(), CutPoint(90, 1_000)).target_end == 300
    # Retention has deleted all that was copied.
    one = up_to(bounds("identical", target_first=200), CutPoint(90, 100))
    assert (one.target_first, one.target_end, one.copied_to) == (100, 100, None)


def test_who_goes_on_is_told_again(tmp_path: Path) -> None:
    path = tmp_path / "verify.json"
    resume = Resume(path, "payments", VerifyFilter())
    notices = list(Cuts(SPEC, values()).notices)
    resume.save({FLOW.name: FlowState(notices=notices, origin=Origin("d", "s", "t"))})
    assert resume.load()[FLOW.name].notices == notices
