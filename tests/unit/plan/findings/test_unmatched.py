"""A plan says which items of a flow's lists match no topic of its source."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from reconciler.model.base.suggestions import near
from reconciler.model.declared.groups import GroupRules
from reconciler.model.names.selection import Selection
from reconciler.model.planning.observed import ObservedCluster
from reconciler.plan.findings.unmatched import unmatched, unmatched_groups
from tests.unit.plan.facts import EAST, WEST, cluster, flow, plan_of, topic, topology

THERE = ("orders", "payments.eu", "users", "eu-west.stock", "__consumer_offsets", "app.internal")


def told(include: Sequence[str] = (".*",), exclude: Sequence[str] = ()) -> list[str]:
    return list(unmatched(replace(flow(), topics=Selection(tuple(include), tuple(exclude))), THERE))


@pytest.mark.parametrize(
    ("item", "meant"),
    [
        *(("oders", "orders"), ("Orders", "orders"), ("stock", "eu-west.stock"), ("payments-eu", "payments.eu")),
        *(("nothing-like-it", None), ("nothing.*", None)),
    ],
)
def test_each_item_that_matches_nothing_is_told(item: str, meant: str | None) -> None:
    expected = f"item {item} of topics.include matches no topic of us-east"
    assert told(["orders", item, "users.*"]) == [expected + (f"; did you mean {meant}?" if meant else "")]


def test_what_is_called_like_an_internal_topic_is_left_behind_and_said() -> None:
    source = cluster(EAST, topic("orders"), topic("app-internal"), topic("eu-west.x.replica"), topic("__x"))
    (notice,) = plan_of(topology(), source, cluster(WEST)).clusters[0].warnings
    expected = "left out, as their names are those of internal topics: app-internal; add them to topics.include to copy"
    assert (notice.subject, notice.message) == ("flow us-east-eu-west", expected)
    named = plan_of(topology(flow(include=[".*", ".*-internal"])), source, cluster(WEST))
    assert (named.clusters[0].warnings, [one.topics for one in named.clusters[0].flows]) == ((), [2])
    assert [step.name for step in named.steps if step.name.startswith("us-")] == [
        "us-east.app-internal",
        "us-east.orders",
    ]
    assert told(["orders", "app.internal", "x-internal"]) == [
        "item x-internal of topics.include matches no topic of us-east"
    ]


def test_items_of_exclude_too() -> None:
    assert told(exclude=["orders", "ordres", ".*-tmp", "__.*"]) == [
        "item ordres of topics.exclude matches no topic of us-east; did you mean orders?",
        "item .*-tmp of topics.exclude matches no topic of us-east",
    ]


def test_everything_matches_what_will_be_there() -> None:
    assert list(unmatched(flow(), ())) == []


def test_what_matches_internal_topics_alone_takes_nothing() -> None:
    assert told([r"__consumer.*"]) == ["item __consumer.* of topics.include matches no topic of us-east"]


def test_many_items_are_not_many_lines() -> None:
    said = told([f"none-{number}" for number in range(12)])
    assert len(said) == 6
    assert said[-1] == "7 more items of topics match no topic of us-east: none-5, none-6, none-7, none-8, none-9 …"


def test_the_plan_has_it_among_its_notes() -> None:
    plan = plan_of(
        topology(flow(include=["orders", "usres"])), cluster(EAST, topic("orders"), topic("users")), cluster(WEST)
    )
    message = "item usres of topics.include matches no topic of us-east; did you mean users?"
    assert [(one.subject, one.message) for one in plan.clusters[0].warnings] == [("flow us-east-eu-west", message)]


def groups_told(include: Sequence[str], there: Sequence[str]) -> list[str]:
    return list(unmatched_groups(replace(flow(), groups=GroupRules(tuple(include))), there))


def test_groups_that_are_not_there_are_told_as_well() -> None:
    assert groups_told(["biling", "team+app", "x.*", ".*"], ["billing", "team+app"]) == [
        "item biling of groups.include matches no group of us-east; did you mean billing?",
        "item x.* of groups.include matches no group of us-east",
    ]


def test_the_plan_tells_of_groups_where_it_was_shown_them() -> None:
    declared = topology(flow(groups=GroupRules(("biling",))))
    source = cluster(EAST, topic("orders"))
    assert plan_of(declared, source, cluster(WEST)).clusters[0].warnings == ()
    seen = replace(source, groups=frozenset({"billing"}))
    (notice,) = plan_of(declared, seen, cluster(WEST)).clusters[0].warnings
    assert notice.message.endswith("no group of us-east; did you mean billing?")
    assert ObservedCluster.from_json(json.loads(json.dumps(seen.to_json()))) == seen


def test_a_name_that_is_unlike_all_others_is_near_none() -> None:
    assert near("orders", []) is None
    assert near("x", ["orders", "y" * 240]) is None
