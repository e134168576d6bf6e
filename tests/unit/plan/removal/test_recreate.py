"""Copies that are deleted to be made again: only ours, only what a flow fills again, and what is lost is shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.base.errors import Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.planning.removals import DeleteTopic
from reconciler.model.planning.steps import Plan
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.plan.removal.recreate import recreated, recreation_plan
from tests.unit.plan.facts import EAST, WEST, cluster, flow, topic, topology

COPY = "us-east.orders"
OWNED = OwnedTopic(
    *(COPY, f"id-of-{COPY}", "payments", "0123", f"{EAST}-{WEST}", EAST, "orders", "id-of-orders"),
    *(6, "identical", {}),
)


def seen(
    record: OwnedTopic = OWNED, copy: ObservedTopic | None = None, original: ObservedTopic | None = None
) -> dict[str, ObservedCluster]:
    return {
        EAST: cluster(EAST, original or topic("orders"), topic("users")),
        WEST: cluster(WEST, copy or topic(COPY), topic("us-east.users"), owned=(record,)),
    }


def planned(observed: dict[str, ObservedCluster], declared: Topology | None = None) -> Plan:
    declared = declared or topology()
    return recreation_plan(declared, observed, recreated(declared, observed, [WEST], [COPY]))


def holding(name: str, *held: int) -> ObservedTopic:
    return replace(topic(name, len(held)), starts=(0,) * len(held), ends=held)


def test_a_copy_is_deleted_and_nothing_else_changes() -> None:
    plan = planned(seen())
    assert plan.steps == (DeleteTopic(WEST, COPY, f"id-of-{COPY}", f"{EAST}-{WEST}", EAST, "orders", "recreated"),)
    (here,) = plan.clusters
    assert (here.warnings, here.declared, plan.deletions("topic")) == ((), None, 1)


def test_a_topic_of_another_owner_stays_whatever_a_flow_would_copy_there() -> None:
    theirs = replace(OWNED, name="us-east.users", source_topic="users", topology="billing")
    observed = seen()
    target = observed[WEST]
    observed[WEST] = replace(target, owned={**target.owned, theirs.name: theirs})
    copies = recreated(topology(), observed, [WEST], [COPY, theirs.name])
    assert [step.name for step in recreation_plan(topology(), observed, copies).steps] == [COPY]


def test_records_that_the_original_has_no_more_are_pointed_out() -> None:
    plan = planned(seen(copy=holding(COPY, 700, 500), original=holding("orders", 600, 500)))
    (warning,) = plan.clusters[0].warnings
    assert warning.subject == COPY
    found = "it holds 1,200 offsets, and its original 1,100 by now: what the original has no more is lost"
    assert warning.message == found
    (kept,) = planned(seen(copy=holding(COPY, 700), original=holding("orders", 700))).clusters[0].warnings
    assert kept.message == "it holds 700 offsets, and its original 700 by now: all of them are copied again"


def test_one_that_is_gone_already_needs_no_deletion() -> None:
    observed = seen()
    target = observed[WEST]
    gone = replace(target, topics={"us-east.users": topic("us-east.users")}, names=target.names - {COPY})
    assert planned({**observed, WEST: gone}).steps == ()


@pytest.mark.parametrize(
    ("observed", "declared", "why"),
    [
        (seen(), topology(flow(include=["users"])), "no enabled flow copies us-east's orders there now"),
        (seen(), topology(flow(enabled=False)), "no enabled flow copies us-east's orders there now"),
        (seen(), topology(replace(flow(), topics=Selection((".*",), ("orders",)))), "no enabled flow copies"),
        (seen(original=topic("others")), topology(), "no enabled flow copies us-east's orders there now"),
        (seen(replace(OWNED, topic_id="another")), topology(), "it is not ours"),
        (seen(replace(OWNED, topic_id=None)), topology(), "an interrupted apply was about to make it"),
    ],
    ids=["not included", "not enabled", "excluded", "no original", "made by others", "not confirmed"],
)
def test_what_would_not_be_made_again_is_refused(
    observed: dict[str, ObservedCluster], declared: Topology, why: str
) -> None:
    with pytest.raises(Refused) as refused:
        planned(observed, declared)
    (problem,) = refused.value.problems
    assert (problem.code, problem.where, why in problem.message) == ("AB458", f"{WEST}, topic {COPY}", True), problem
