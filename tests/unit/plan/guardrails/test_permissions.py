"""What is not allowed at a cluster, said before anything is made: permissions of the replicator, and fill: markers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.model.acls.own_access import Access, AccessRefusal
from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Refused
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.start import Start
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.plan.copies.desired import desired_topics
from tests.unit.plan.facts import EAST, WEST, cluster, flow, made, plan_of, record, topic, topology

SOURCE = cluster(EAST, topic("orders"))
ALTER = Access(frozenset({"ALTER", "DESCRIBE"}))
BEFORE_3_8 = replace(ALTER, marker_operation="CLUSTER_ACTION")


def as_mirror(declared: Topology) -> Topology:
    """The same topology, logging in as a user on every cluster."""
    security = Security("SASL_PLAINTEXT", "PLAIN", "mirror", Reference("env", "PASSWORD"))
    return replace(
        declared,
        clusters={alias: replace(one, security=security) for alias, one in declared.clusters.items()},
    )


def problems(declared: Topology, *clusters: ObservedCluster) -> list[tuple[str, str, str, str]]:
    with pytest.raises(EnvironmentFault) as raised:
        plan_of(declared, *clusters)
    return [(one.code, one.where, one.message, one.remedy) for one in raised.value.problems]


def applied(operations: frozenset[str] | None) -> ObservedCluster:
    (wanted,) = desired_topics(topology(), {EAST: SOURCE, WEST: cluster(WEST)}, [WEST])
    return cluster(WEST, replace(made(wanted), operations=operations), owned=[record(wanted, topology())])


@pytest.mark.parametrize(
    ("access", "allowed"),
    [
        (Access(), False),
        (ALTER, True),
        (BEFORE_3_8, False),
        (Access(frozenset({"CLUSTER_ACTION"}), "CLUSTER_ACTION"), True),
        (Access(frozenset({"CLUSTER_ACTION"}), "ALTER"), True),
        (Access(frozenset({"DESCRIBE"})), False),
    ],
)
def test_who_may_write_markers(access: Access, allowed: bool) -> None:
    assert access.may_write_markers is allowed
    (auto,) = plan_of(topology(), SOURCE, replace(cluster(WEST), access=access)).clusters[0].flows
    assert auto.fill == ("markers" if allowed else "transactions")
    assert auto.fill_reason.startswith("exact" if allowed else "exact except across a coordinator's restart")


def test_transactions_may_be_chosen_where_markers_are_allowed() -> None:
    declared = topology(flow(fill="transactions"))
    (planned,) = plan_of(declared, SOURCE, replace(cluster(WEST), access=ALTER)).clusters[0].flows
    assert planned.fill == "transactions"
    assert "markers need" not in planned.fill_reason


def test_markers_that_are_not_allowed_are_an_error_where_they_are_demanded() -> None:
    declared = as_mirror(topology(flow(fill="markers")))
    (hidden,) = problems(declared, SOURCE, cluster(WEST))
    assert hidden == (
        "AB362",
        "cluster eu-west (eu-west.example:9092)",
        "flow us-east-eu-west demands fill: markers, and user mirror is not allowed ALTER on the cluster "
        "(or may not DESCRIBE the cluster, which would show it)",
        "grant ALTER on the cluster, or let fill be auto: it takes transactions then",
    )
    (old,) = problems(declared, SOURCE, replace(cluster(WEST), access=BEFORE_3_8))
    assert old[2].endswith("is not allowed CLUSTER_ACTION on the cluster")
    (planned,) = plan_of(declared, SOURCE, replace(cluster(WEST), access=ALTER)).clusters[0].flows
    assert planned.fill == "markers"


@pytest.mark.parametrize(
    "demanding",
    [
        flow(fill="markers", delivery="at-least-once"),
        flow(fill="markers", start=Start("latest")),
        flow(fill="markers", offsets="translated"),
    ],
)
def test_markers_are_demanded_only_where_a_copy_may_have_gaps(demanding: Flow) -> None:
    """What has offsets of its own has none, unless copies were begun with identical offsets before."""
    declared = topology(demanding)
    assert plan_of(declared, SOURCE, cluster(WEST)).steps
    if demanding.offsets == "auto":
        ((code, *_),) = problems(declared, SOURCE, applied(None))
        assert code == "AB362"


def test_a_topic_for_dead_letters_must_be_there_and_be_no_copy() -> None:
    declared = topology(flow(dlq="dead"))
    (missing,) = problems(declared, SOURCE, cluster(WEST))
    assert missing[:2] == ("AB363", "cluster eu-west (eu-west.example:9092), topic dead")
    assert "it does not exist" in missing[2]
    assert plan_of(declared, SOURCE, replace(cluster(WEST), names=frozenset({"dead"}))).clusters
    found = problems(topology(flow(dlq="us-east.orders")), SOURCE, applied(None))
    assert [(code, message.endswith("and it is a copy of a topic")) for code, _, message, _ in found] == [
        ("AB363", True)
    ]


def test_what_the_target_refuses_a_flow_is_an_error() -> None:
    ids = "transactional ids anabranch.payments.us-east-eu-west.*"
    access = Access(
        refusals=(AccessRefusal("us-east-eu-west", "WRITE", ids), AccessRefusal("another", "WRITE", "more"))
    )
    assert problems(as_mirror(topology()), SOURCE, replace(cluster(WEST), access=access)) == [
        (
            "AB360",
            "cluster eu-west (eu-west.example:9092)",
            f"user mirror is not allowed WRITE on {ids}, which flow us-east-eu-west needs",
            f"grant WRITE on {ids}",
        )
    ]


IDS = "transactional ids anabranch.payments.us-east-eu-west.*"
NO_IDS = Access(refusals=(AccessRefusal("us-east-eu-west", "WRITE", IDS, transactional=True),))
REPEATING = flow(delivery="at-least-once")
OTHERWISE = (
    ", or declare `delivery: at-least-once` for flow us-east-eu-west: its copies have offsets of their own then, and "
    "records may be repeated"
)


def test_who_may_not_use_transactional_ids_is_told_of_delivery_at_least_once() -> None:
    target = replace(cluster(WEST), access=NO_IDS)
    for demanded in (flow(), flow(offsets="translated")):
        ((code, _, message, remedy),) = problems(as_mirror(topology(demanded)), SOURCE, target)
        assert (code, message) == (
            "AB360",
            f"user mirror is not allowed WRITE on {IDS}, which flow us-east-eu-west needs",
        )
        assert remedy == f"grant WRITE on {IDS}{OTHERWISE}"
    ((_, _, _, remedy),) = problems(topology(flow(offsets="identical")), SOURCE, target)
    assert remedy == f"grant WRITE on {IDS}"


def test_a_cluster_without_transactions_is_for_delivery_at_least_once() -> None:
    target = replace(cluster(WEST), access=Access(has_transactions=False))
    assert problems(topology(), SOURCE, target) == [
        (
            "AB364",
            "cluster eu-west (eu-west.example:9092)",
            "flow us-east-eu-west is to copy exactly once, and the cluster has no transactions",
            f"take Apache Kafka 2.8 or newer{OTHERWISE}",
        )
    ]
    (planned,) = plan_of(topology(REPEATING), SOURCE, target).clusters[0].flows
    assert planned.offsets == "translated"


def test_what_may_be_repeated_needs_no_transactional_ids() -> None:
    (planned,) = plan_of(topology(REPEATING), SOURCE, replace(cluster(WEST), access=NO_IDS)).clusters[0].flows
    assert (planned.offsets, planned.topics) == ("translated", 1)
    group = Access(refusals=(*NO_IDS.refusals, AccessRefusal("us-east-eu-west", "READ", "group anabranch")))
    ((code, _, message, _),) = problems(topology(REPEATING), SOURCE, replace(cluster(WEST), access=group))
    assert (code, "READ on group anabranch" in message) == ("AB360", True)


def test_a_copy_that_was_begun_with_identical_offsets_needs_them_whatever_is_declared_now() -> None:
    begun = replace(applied(None), access=NO_IDS)
    ((code, _, _, remedy),) = problems(topology(REPEATING), SOURCE, begun)
    assert (code, remedy) == ("AB360", f"grant WRITE on {IDS}")


def test_operations_that_are_missing_on_a_copy_or_on_its_original_are_errors() -> None:
    assert plan_of(topology(), SOURCE, applied(None)).is_empty
    assert plan_of(topology(), SOURCE, applied(frozenset({"READ", "WRITE", "DESCRIBE"}))).is_empty
    ((code, _, message, _),) = problems(as_mirror(topology()), SOURCE, applied(frozenset({"DESCRIBE"})))
    assert (code, message) == (
        "AB360",
        "user mirror is not allowed READ and WRITE on topic us-east.orders, which flow us-east-eu-west needs",
    )
    unread = cluster(EAST, replace(topic("orders"), operations=frozenset({"DESCRIBE"})))
    ((code, where, message, _),) = problems(as_mirror(topology()), unread, cluster(WEST))
    assert (code, where) == ("AB360", "cluster us-east (us-east.example:9092)")
    assert message.startswith("user mirror is not allowed READ on topic orders")


def test_what_is_refused_and_what_is_missing_come_together() -> None:
    foreign = cluster(WEST, topic("us-east.orders"))
    with pytest.raises(AnabranchError) as raised:
        plan_of(topology(flow(fill="markers")), SOURCE, foreign)
    assert [problem.code for problem in raised.value.problems] == ["AB401", "AB362"]
    assert not isinstance(raised.value, Refused | EnvironmentFault)
    assert raised.value.exit_code == 1


def test_a_user_has_a_name() -> None:
    assert Cluster("a", ("a:1",)).user == "an anonymous user"
    assert as_mirror(topology()).clusters[EAST].user == "user mirror"


def test_access_comes_back_from_json_the_same() -> None:
    access = Access(
        frozenset({"ALTER", "DESCRIBE"}),
        "CLUSTER_ACTION",
        (AccessRefusal("flow", "WRITE", "ids", transactional=True),),
        False,
    )
    assert Access.from_json(access.to_json()) == access
    assert access.to_json()["operations"] == ["ALTER", "DESCRIBE"]
