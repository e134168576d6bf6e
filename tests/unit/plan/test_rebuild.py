"""Ownership records that were lost are written anew where the records of copies prove whose the copies are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from reconciler.model.base.errors import Problem, Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import AddPartitions, CreateInternalTopic, Plan, RecordOwnership
from reconciler.model.recorded.remembered import RememberedCopy
from reconciler.plan.rebuild import rebuild_plan, to_compare
from tests.unit.plan.facts import EAST, INTERNAL, WEST, carried_out, cluster, flow, plan_of, topic, topology

NAMES = "orders", "users"
SOURCE = cluster(EAST, *(topic(name, 2, configs={"retention.ms": "1000"}) for name in NAMES))
FLOW = "us-east-eu-west"


def proof(name: str = "orders", **fields: Any) -> RememberedCopy:
    remote = f"us-east.{name}"
    return replace(RememberedCopy(FLOW, remote, f"id-of-{name}", f"id-of-{remote}", 2, translated=False), **fields)


PROOFS = tuple(proof(name) for name in NAMES)


def lost(
    declared: Topology | None = None,
    remembered: Sequence[RememberedCopy] = PROOFS,
    ends: Sequence[int] = (5, 7),
    state: bool = False,
) -> ObservedCluster:
    """A target whose copies were applied, and whose record of ownership is gone."""
    target = carried_out(plan_of(declared or topology(), SOURCE, cluster(WEST)), cluster(WEST))
    topics = {name: replace(one, starts=(0,) * 2, ends=tuple(ends)) for name, one in target.topics.items()}
    names = target.names if state else target.names - {INTERNAL[0]}
    return replace(target, topics=topics, owned={}, names=names, remembered=tuple(remembered), in_force=None)


def rebuilt(there: ObservedCluster, declared: Topology | None = None, *only: str, **more: Any) -> Plan:
    return rebuild_plan(declared or topology(), {EAST: SOURCE, WEST: there}, [WEST], only, **more)


def refused(there: ObservedCluster) -> tuple[Problem, ...]:
    with pytest.raises(Refused) as error:
        plan_of(topology(), SOURCE, there)
    return error.value.problems


def test_a_plan_says_that_the_record_is_missing_and_what_to_do() -> None:
    problems = refused(lost())
    assert [one.code for one in problems] == ["AB416", "AB416"]
    assert str(problems[0]) == (
        "cluster eu-west (eu-west.example:9092), topic us-east.orders: is not on record as ours, and records of copies "
        f"show that flow {FLOW} has filled it: the record of ownership is missing, though copies are here — "
        "`anabranch adopt --rebuild --target us-east.orders` writes it anew once the copy was compared; identical "
        "offsets stay [AB416]"
    )


@pytest.mark.parametrize(
    "wrong",
    [
        proof(target_id="another"),
        proof(flow="another"),
        proof(remote="us-east.others"),
    ],
    ids=["a topic that somebody made anew", "another flow", "another topic"],
)
def test_what_nothing_proves_is_as_foreign_as_ever(wrong: RememberedCopy) -> None:
    there = lost(remembered=[wrong])
    assert {one.code for one in refused(there)} == {"AB401"}
    plan = rebuilt(there)
    assert plan.steps == ()
    assert {notice.subject for notice in plan.clusters[0].left_alone} == {"us-east.orders", "us-east.users"}
    assert to_compare(topology(), {EAST: SOURCE, WEST: there}, [WEST]) == []


@pytest.mark.parametrize("state", [False, True], ids=["deleted", "emptied"])
def test_what_is_proved_is_recorded_as_it_was_and_nothing_else_is_done(state: bool) -> None:
    there = lost(state=state)
    assert to_compare(topology(), {EAST: SOURCE, WEST: there}, [WEST]) == ["us-east.orders", "us-east.users"]
    plan = rebuilt(there)
    kinds = [type(step) for step in plan.steps]
    assert kinds == [*([] if state else [CreateInternalTopic]), RecordOwnership, RecordOwnership]
    assert {step.reason for step in plan.steps if isinstance(step, RecordOwnership)} == {"rebuilt"}
    after = carried_out(plan, there)
    whole = carried_out(plan_of(topology(), SOURCE, cluster(WEST)), cluster(WEST))
    assert after.owned == whole.owned
    assert plan_of(topology(), SOURCE, after).steps == ()
    assert rebuilt(after).steps == ()


def test_only_what_is_named_is_recorded() -> None:
    there = lost()
    steps = [step.name for step in rebuilt(there, None, "us-east.users").steps if isinstance(step, RecordOwnership)]
    assert steps == ["us-east.users"]
    assert to_compare(topology(), {EAST: SOURCE, WEST: there}, [WEST], ["us-east.users"]) == ["us-east.users"]


def test_what_differs_from_its_original_is_not_recorded_nor_are_the_others() -> None:
    with pytest.raises(Refused) as error:
        rebuilt(lost(), against={"us-east.orders": "partition 1 differs from its original: changed"})
    (problem,) = error.value.problems
    assert problem.code == "AB417"
    assert "partition 1 differs from its original: changed" in problem.message
    assert "with translated offsets" in problem.remedy


@pytest.mark.parametrize(
    ("declared", "remembered"),
    [
        (topology(), [proof(translated=True)]),
        (topology(flow(offsets="translated")), [proof()]),
        (topology(flow(delivery="at-least-once")), [proof()]),
    ],
    ids=["on record", "declared", "repeating"],
)
def test_copies_with_offsets_of_their_own_go_on_with_them_and_need_no_comparison(
    declared: Topology, remembered: list[RememberedCopy]
) -> None:
    there = lost(declared, remembered)
    assert to_compare(declared, {EAST: SOURCE, WEST: there}, [WEST]) == []
    (step,) = [one for one in rebuilt(there, declared).steps if isinstance(one, RecordOwnership)]
    assert step.topic.offsets == "translated"


def test_a_copy_that_was_never_written_to_needs_no_comparison() -> None:
    there = lost(ends=(0, 0))
    assert to_compare(topology(), {EAST: SOURCE, WEST: there}, [WEST]) == []
    assert {step.topic.offsets for step in rebuilt(there).steps if isinstance(step, RecordOwnership)} == {"identical"}


def test_an_original_that_was_made_anew_stays_so_on_record() -> None:
    """Else its new records would follow behind the old ones without a word."""
    there = lost(remembered=[proof(source_id="former"), proof("users")])
    after = carried_out(rebuilt(there), there)
    assert after.owned["us-east.orders"].source_topic_id == "former"
    plan = plan_of(topology(), SOURCE, after)
    assert "was made anew since the last apply" in str(plan.clusters[0].warnings)


def test_what_has_changed_meanwhile_is_left_to_the_next_plan() -> None:
    there = lost()
    orders = there.topics["us-east.orders"]
    changed = replace(orders, configs={**orders.configs, "retention.ms": "9"})
    there = replace(there, topics={**there.topics, "us-east.orders": changed})
    grown = cluster(EAST, topic("orders", 3, configs={"retention.ms": "1000"}), SOURCE.topics["users"])
    plan = rebuild_plan(topology(), {EAST: grown, WEST: there}, [WEST])
    after = carried_out(plan, there)
    record = after.owned["us-east.orders"]
    assert (record.partitions, "retention.ms" in record.configs) == (2, False)
    kinds = {type(step).__name__ for step in plan_of(topology(), grown, after).steps}
    assert kinds == {AddPartitions.__name__, "AlterConfig"}


def test_what_another_topology_has_on_record_is_its_own() -> None:
    there = lost()
    record = carried_out(plan_of(topology(), SOURCE, cluster(WEST)), cluster(WEST)).owned["us-east.orders"]
    there = replace(there, owned={"us-east.orders": replace(record, topology="another")})
    names = [step.name for step in rebuilt(there).steps if isinstance(step, RecordOwnership)]
    assert names == ["us-east.users"]
