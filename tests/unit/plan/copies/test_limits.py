"""A flow takes no more of a source than its limits say: what is copied already first, then by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reconciler.model.declared.limits import Beyond, Limits
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.outcome import Growth
from reconciler.model.planning.steps import AddPartitions, CreateTopic, Plan
from reconciler.operate.flows.following import Wanted, within_growth
from reconciler.operate.flows.observations import Observation
from reconciler.plan.copies.desired import desired_topics
from reconciler.plan.copies.limits import within_limits
from reconciler.plan.copies.offsets import limited
from reconciler.plan.part import known_names
from reconciler.plan.removal.prune import prunable
from tests.unit.declare.declaring import HEAD, load
from tests.unit.plan.facts import EAST, WEST, carried_out, cluster, flow, plan_of, topic, topology

NAME = "us-east-eu-west"


def limited_to(partitions: int | None = None, **limits: int) -> Topology:
    return topology(flow(limits=replace(Limits(), **limits), partitions=partitions))


def source(**partitions: int) -> ObservedCluster:
    return cluster(EAST, *(topic(name, count) for name, count in partitions.items()))


def copied(**partitions: int) -> ObservedCluster:
    """The target after the plan for these topics was carried out."""
    target = cluster(WEST)
    return carried_out(plan_of(topology(), source(**partitions), target), target)


def made(one: Topology, east: ObservedCluster, west: ObservedCluster) -> dict[str, int]:
    return {
        step.name: step.topic.partitions
        for step in plan_of(one, east, west).steps
        if isinstance(step, CreateTopic | AddPartitions)
    }


def notes(one: Topology, east: ObservedCluster, west: ObservedCluster) -> list[str]:
    return [note.message for target in plan_of(one, east, west).clusters for note in target.warnings]


def test_topics_beyond_the_limit_are_left_out_by_name_and_told_once() -> None:
    east = source(**{f"t{number}": 2 for number in range(9)})
    assert made(limited_to(topics=3), east, cluster(WEST)) == {f"us-east.t{number}": 2 for number in range(3)}
    (note,) = notes(limited_to(topics=3), east, cluster(WEST))
    assert note == (
        f"flow {NAME}, limits.topics: at most 3 topics, found 9; not copied: t3, t4, t5, t6, t7 and 1 more — "
        "raise it to copy these, or exclude them [AB237]"
    )
    assert notes(limited_to(topics=9), east, cluster(WEST)) == []


def test_what_is_copied_already_comes_first_and_is_never_given_up() -> None:
    east, west = source(a=1, b=1, y=1, z=1), copied(y=1, z=1)
    assert set(made(limited_to(topics=3), east, west)) == {"us-east.a"}
    one = limited_to(topics=1)
    assert made(one, east, west) == {}
    assert {wanted.name for wanted in desired_topics(one, {EAST: east, WEST: west}, [WEST])} == {
        "us-east.y",
        "us-east.z",
    }
    assert list(prunable(one, west, {"us-east.y", "us-east.z"})) == []
    (note,) = notes(one, east, west)
    assert "at most 1 topics, found 4; not copied: a, b —" in note


def test_partitions_count_together_and_what_does_not_fit_takes_no_room() -> None:
    east = source(a=4, b=50, c=4, d=3)
    assert made(limited_to(partitions=None), east, cluster(WEST)).keys() == {f"us-east.{name}" for name in "abcd"}
    one = topology(flow(limits=Limits(partitions=10)))
    assert made(one, east, cluster(WEST)) == {"us-east.a": 4, "us-east.c": 4}
    (note,) = notes(one, east, cluster(WEST))
    assert "at most 10 partitions, found 61; not copied: b, d —" in note


def test_a_copy_that_may_not_grow_keeps_what_it_has() -> None:
    west, east = copied(a=2, b=2), source(a=2, b=200, c=1)
    one = topology(flow(limits=Limits(partitions=6)))
    assert made(one, east, west) == {"us-east.c": 1}
    wanted = {topic.name: topic.partitions for topic in desired_topics(one, {EAST: east, WEST: west}, [WEST])}
    assert wanted == {"us-east.a": 2, "us-east.b": 2, "us-east.c": 1}
    within = limited(one.flows[0], one, {EAST: east, WEST: west})
    assert within.not_enlarged == {"b": 2}
    assert [(part.name, part.partitions) for part in within.originals] == [("a", 2), ("b", 2), ("c", 1)]
    (note,) = notes(one, east, west)
    assert "found 203; copies not enlarged: b —" in note
    after = carried_out(plan_of(one, east, west), west)
    assert plan_of(one, east, after).is_empty


def test_partitions_that_a_flow_asks_for_count_too() -> None:
    one = topology(flow(partitions=5, limits=Limits(partitions=11)))
    assert made(one, source(a=1, b=1, c=1), cluster(WEST)) == {"us-east.a": 5, "us-east.b": 5}
    originals, west = [topic("a", 1), topic("b", 1)], copied(a=1, b=1)
    assert within_limits(one.flows[0], originals, west).not_enlarged == {}
    narrow = replace(one.flows[0], limits=Limits(partitions=9))
    assert within_limits(narrow, originals, west).not_enlarged == {"b": 1}


def test_each_flow_has_limits_of_its_own() -> None:
    flows = (flow(limits=Limits(topics=1)), flow("ap", WEST))
    observed = (source(a=1, b=1), cluster("ap", topic("a", 1), topic("b", 1)), cluster(WEST))
    steps = plan_of(topology(*flows), *observed).steps
    assert {step.name for step in steps if isinstance(step, CreateTopic)} == {"us-east.a", "ap.a", "ap.b"}


def test_a_part_of_a_plan_does_not_go_beyond_a_limit_either() -> None:
    one, observed = limited_to(topics=1), {EAST: source(a=1, b=1), WEST: cluster(WEST)}
    assert known_names(one, observed, [WEST]) == {"us-east.a"}


def looked_at(one: Topology, east: ObservedCluster, west: ObservedCluster) -> tuple[Plan, tuple[Beyond, ...]]:
    return within_growth(Wanted(one, one, ""), Observation(one, {EAST: east, WEST: west}), one.flows[0])


def grown(one: Topology, east: ObservedCluster, west: ObservedCluster) -> tuple[dict[str, int], list[Beyond]]:
    plan, beyond = looked_at(one, east, west)
    steps = [step for step in plan.steps if isinstance(step, CreateTopic | AddPartitions)]
    return {step.name: step.topic.partitions for step in steps}, list(beyond)


def test_one_look_adds_no_more_than_growth_and_the_next_goes_on() -> None:
    names = [f"t{number:02}" for number in range(30)]
    east, west, one = source(**dict.fromkeys(names, 1)), cluster(WEST), limited_to(growth=10)
    for look in range(3):
        plan, beyond = looked_at(one, east, west)
        new = [step.name for step in plan.steps if isinstance(step, CreateTopic)]
        assert new == [f"us-east.{name}" for name in names[look * 10 : look * 10 + 10]]
        left = tuple(names[look * 10 + 10 :])
        assert beyond == ((Beyond(NAME, "growth", 10, 30 - look * 10, left),) if left else ())
        west = carried_out(plan, west)
    assert grown(one, east, west) == ({}, [])
    assert len(made(one, east, cluster(WEST))) == 30, "an apply makes what its plan shows"


def test_copies_grow_before_new_ones_are_made_and_a_topic_larger_than_growth_waits() -> None:
    west, east = copied(a=2, z=2), source(a=5, b=9, c=4, z=40)
    steps, (beyond,) = grown(limited_to(growth=8), east, west)
    assert steps == {"us-east.a": 5, "us-east.c": 4}
    assert beyond == Beyond(NAME, "growth", 8, 54, ("b",), (("z", 2),))
    assert "at most 8 partitions at one look, found 54; not copied: b; copies not enlarged: z" in beyond.problem.message
    assert "anabranch apply" in beyond.problem.remedy
    steps, (beyond,) = grown(limited_to(growth=0), east, west)
    assert (steps, beyond.left_out, dict(beyond.not_enlarged)) == ({}, ("b", "c"), {"a": 2, "z": 2})


def test_why_topics_are_not_copied_is_known_by_topic() -> None:
    growth = Growth(left_out={"x": "it is foreign"}, beyond=(Beyond("f", "topics", 5, 7, ("x", "y")),))
    assert growth.not_copied == {"x": "it is foreign", "y": "beyond limits.topics of flow f: 5 topics [AB237]"}


def test_limits_are_declared_one_by_one(tmp_path: Path) -> None:
    text = (
        f"{HEAD}defaults: {{limits: {{topics: 50, growth: 0}}}}\n"
        "replication:\n  - {fan-out: {from: a, to: [b, c]}, limits: {partitions: 70}}\n"
        "flows:\n  - {from: a, to: c, limits: {topics: 60}}\n  - {from: c, to: d}\n"
    )
    found = {one.name: one.limits for one in load(tmp_path, text).flows}
    assert found == {"a-b": Limits(50, 70, 0), "a-c": Limits(60, 70, 0), "c-d": Limits(50, 100_000, 0)}
    assert load(tmp_path, HEAD + "flows: [{from: a, to: b}]\n").flows[0].limits == Limits(10_000, 100_000, 1_000)


def test_the_digest_of_files_without_limits_stays_what_it_was() -> None:
    assert topology().digest == topology(flow(limits=Limits(10_000, 100_000, 1_000))).digest
    assert topology().digest != limited_to(growth=5).digest
