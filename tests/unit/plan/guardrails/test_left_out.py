"""What a running flow must not copy: topic by topic, where a plan refuses as a whole."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.declared.datacenter import DataCenter
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import lease_group, transactional_prefix
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.plan.copies.desired import desired_topics
from reconciler.plan.copies.offsets import Observed
from reconciler.plan.guardrails.left_out import Reasons, contenders, contested, hindered, left_out, without
from reconciler.replicator.copy.producer_names import ProducerNames
from reconciler.replicator.lease.lease import group_of
from reconciler.replicator.partition.shares import Place
from tests.unit.plan.facts import EAST, WEST, cluster, flow, made, plan_of, record, topic, topology

IDENTITY = ReplicationPolicy("identity")
LONG = "x" * 245


def seen(*clusters: ObservedCluster) -> Observed:
    return {one.alias: one for one in clusters}


def left(declared: Topology, observed: Observed) -> Reasons:
    return left_out(declared, observed, [WEST])


def test_nothing_is_left_out_where_nothing_stands_against_it() -> None:
    assert left(topology(), seen(cluster(EAST, topic("orders")), cluster(WEST))) == {}


def test_foreign_and_unspeakable_topics_are_left_out_and_no_others() -> None:
    east = cluster(EAST, topic("orders"), topic("users"), topic(LONG))
    observed = seen(east, cluster(WEST, topic("us-east.orders")))
    found = left(topology(), observed)
    assert list(found) == ["us-east-eu-west"]
    reasons = found["us-east-eu-west"]
    assert set(reasons) == {"orders", LONG}
    assert "exists and is not ours" in reasons["orders"]
    assert "[AB401]" in reasons["orders"]
    assert "[AB406]" in reasons[LONG]

    rest = without(topology(), found)
    assert replace(rest, flows=topology().flows) == topology()
    canary = replace(topology(), datacenters={f"dc-{WEST}": DataCenter(f"dc-{WEST}", wave=3)})
    assert without(canary, found).wave(WEST) == canary.wave(WEST) == 3
    assert [step.name for step in plan_of(rest, east, observed[WEST]).steps] == ["us-east.users"]


def test_what_demands_identical_offsets_in_vain_is_left_out() -> None:
    declared = topology(flow(policy=IDENTITY, offsets="identical"), flow("ap-south", policy=IDENTITY))
    east, south = cluster(EAST, topic("orders"), topic("users")), cluster("ap-south", topic("orders"))
    found = left(declared, seen(east, south, cluster(WEST)))
    assert {name: set(reasons) for name, reasons in found.items()} == {"us-east-eu-west": {"orders"}}
    assert found["us-east-eu-west"]["orders"].startswith("orders is not started: identical offsets are demanded")
    # What is demanded in vain refuses a plan; the rest of the flow runs all the same.
    assert [s.name for s in plan_of(without(declared, found), east, south, cluster(WEST)).steps] == ["orders", "users"]


def test_the_copy_of_another_original_and_a_topic_of_two_flows_are_left_out() -> None:
    source = cluster(EAST, topic("orders"))
    (wanted,) = desired_topics(topology(), seen(source, cluster(WEST)), [WEST])
    other = replace(record(wanted, topology()), source="ap-south")
    found = left(topology(), seen(source, cluster(WEST, made(wanted), owned=[other])))
    assert "[AB405]" in found["us-east-eu-west"]["orders"]
    twice = left(topology(flow(), flow(name="again")), seen(source, cluster(WEST)))
    assert {name: list(reasons) for name, reasons in twice.items()} == {
        "again": ["orders"],
        "us-east-eu-west": ["orders"],
    }


def test_a_topic_that_is_not_allowed_hinders_no_other() -> None:
    source = cluster(EAST, topic("orders"), topic("users"))
    first = topology(flow(include=["orders"]))
    (wanted,) = desired_topics(first, seen(source, cluster(WEST)), [WEST])
    copy = replace(made(wanted), operations=frozenset({"DESCRIBE"}))
    west = cluster(WEST, copy, owned=[record(wanted, first)])
    assert left(topology(), seen(source, west)) == {}
    found = hindered(topology(), seen(source, west), [WEST])
    assert "READ and WRITE on topic us-east.orders" in found["us-east-eu-west"]["orders"]
    assert [step.name for step in plan_of(without(topology(), found), source, west).steps] == ["us-east.users"]


def test_what_another_tool_made_just_as_we_would_have_may_be_copied_to() -> None:
    source = cluster(EAST, topic("orders"), topic("users"))
    orders, users = desired_topics(topology(), seen(source, cluster(WEST)), [WEST])
    unlike = replace(made(users), configs=dict(users.configs) | {"compression.type": "gzip"})
    observed = seen(source, cluster(WEST, made(orders), unlike))
    assert list(left(topology(), observed)["us-east-eu-west"]) == ["users"]
    # A plan cannot change it all the same.
    found = hindered(without(topology(), left(topology(), observed)), observed, [WEST])
    assert found["us-east-eu-west"]["orders"].startswith("us-east.orders was not made by payments")
    fewer = replace(made(orders), partitions=5)
    assert "orders" in left(topology(), seen(source, cluster(WEST, fewer)))["us-east-eu-west"]
    theirs = replace(record(orders, topology()), topology="billing")
    found = left(topology(), seen(source, cluster(WEST, made(orders), owned=[theirs])))
    assert "[AB401]" in found["us-east-eu-west"]["orders"]


def test_flows_from_other_sources_contend_for_names_only_where_one_keeps_them() -> None:
    flows = (flow(), flow("ap-south"), flow("af-west", policy=IDENTITY), flow("af-west", EAST, policy=IDENTITY))
    declared = topology(*flows)
    assert [other.name for other in contenders(declared, flows[0])] == ["af-west-eu-west"]
    assert [other.name for other in contenders(declared, flows[2])] == ["us-east-eu-west", "ap-south-eu-west"]
    assert contenders(declared, flows[3]) == ()


def test_what_a_source_that_nobody_can_look_at_may_have_too_waits() -> None:
    one, other = flow(policy=IDENTITY), flow("ap-south", policy=IDENTITY, include=["orders", "users"])
    declared = topology(one, other)
    source = cluster(EAST, topic("orders"), topic("users"), topic("parts"))
    first = topology(flow(policy=IDENTITY, include=["orders"]))
    (wanted,) = desired_topics(first, seen(source, cluster(WEST)), [WEST])
    west = cluster(WEST, made(wanted), owned=[record(wanted, first)])
    assert contested(declared, one, seen(source, west)) == {
        "us-east-eu-west": {"users": "users may be the copy of ap-south's users (flow ap-south-eu-west)"}
    }
    assert contested(topology(one), one, seen(source, west)) == {}


def test_permissions_are_asked_for_the_names_that_the_replicator_takes() -> None:
    identity, place = ProducerNames("payments", "us-east-eu-west"), Place("orders", 3, "us-east.orders")
    prefix = transactional_prefix("payments", "us-east-eu-west")
    assert identity.transactional_id(place) == f"{prefix}orders.3"
    assert all(name.startswith(prefix) for name in (identity.filling_id(place), identity.marking_id(place)))
    assert lease_group("payments", "us-east-eu-west") == group_of("payments", "us-east-eu-west")
