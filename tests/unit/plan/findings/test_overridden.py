"""Drift of flows that were changed at run time: what is in force, against what the files declare."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.declared.override import FlowOverride
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.planning.observed import ObservedCluster
from reconciler.plan.findings.drift import drift_of
from tests.unit.plan.facts import EAST, WEST, topology
from tests.unit.plan.inforce import applied

NAME = f"{EAST}-{WEST}"
BY = "hands through ops@host"


def with_override(laid: Topology) -> ObservedCluster:
    """The target after an apply of `laid`, which has an override over what is declared."""
    return replace(
        applied(laid), overrides=(FlowOverride(NAME, EAST, WEST, {"tasks": 1}, by=BY, since=1_800_000_000.0),)
    )


def drifted(declared: Topology, target: ObservedCluster) -> list[tuple[str, str, str, str | None, str | None]]:
    return [
        (one.kind, one.topic, one.field, one.desired, one.found)
        for one in drift_of(declared, {WEST: target})
        if one.topic.startswith("flow ")
    ]


def test_each_field_is_shown_with_who_changed_it_until_the_files_say_the_same() -> None:
    declared = topology()
    (one,) = declared.flows
    laid = replace(declared, flows=(replace(one, tasks=7, topics=Selection(("orders",), ("tmp",))),))
    target = with_override(laid)
    about = ("changed", f"flow {NAME}")
    assert (*about, "tasks", str(one.tasks), "7") in drifted(declared, target)
    assert (*about, "topics.exclude", None, "tmp") in drifted(declared, target)
    (remedy,) = {found.remedy for found in drift_of(declared, {WEST: target}) if found.field == "tasks"}
    assert remedy == (
        f"changed at run time on 2027-01-15 08:00:00 UTC by {BY}: "
        "declare it so, or `anabranch apply` returns to the files"
    )
    assert drifted(laid, target) == []


def test_without_an_override_another_declaration_is_no_drift() -> None:
    declared = topology()
    laid = replace(declared, flows=(replace(declared.flows[0], tasks=7),))
    assert drifted(declared, applied(laid)) == []


def test_flows_that_are_ended_and_begun_at_run_time() -> None:
    declared = topology()
    ended = replace(declared, flows=(replace(declared.flows[0], enabled=False),))
    assert drifted(declared, with_override(ended)) == [("changed", f"flow {NAME}", "enabled", "true", "false")]
    assert drifted(ended, with_override(declared)) == [("unmanaged", f"flow {NAME}", "enabled", None, "true")]
