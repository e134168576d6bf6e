"""ACLs of copies on a real broker when their flow fails over and back: who may write to them, and who no longer may.

Both sides are one cluster; names keep them apart.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from reconciler.cli import failback, failover
from reconciler.cli.main import main
from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.failover.failback import Failback
from reconciler.model.declared.cluster import Replicator
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.planning.steps import Plan
from reconciler.model.recorded.failover import FailbackPlan, FailedOver
from reconciler.observe.topology import observe, observe_owned
from reconciler.plan.acls.failover_acls import failover_acl_plan
from reconciler.plan.build import build_plan
from reconciler.provision.direct import DirectProvisioner
from reconciler.replicator.driver.driver import new_run
from reconciler.state.confluent import bindings
from reconciler.state.failovers import Failovers
from tests.support.clusters.kafka import ANSWER_SECONDS, admin, create, grant
from tests.support.replicator.copying import copy
from tests.support.security.acls import as_user
from tests.support.waiting import eventually

SOURCE, TARGET, FLOW = "north", "south", "north-south"
USERS = {user: f"{user}-secret" for user in ("admin", "alice", "mirror")}


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("failing-over", ClusterOptions(users=USERS)) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for user, password in USERS.items():
        monkeypatch.setenv(f"{user.upper()}_PASSWORD", password)


def topology(broker: EmbeddedCluster, name: str) -> Topology:
    flow = Flow(FLOW, SOURCE, TARGET, Selection((f"{name}.*",)))
    clusters = {alias: as_user(alias, broker, "admin") for alias in (SOURCE, TARGET)}
    clusters[TARGET] = replace(clusters[TARGET], replicator=Replicator("User:mirror"))
    return Topology(name, clusters, (flow,))


def plan_of(one: Topology) -> Plan:
    return build_plan(one, observe(one, [TARGET]), [TARGET])


def carry_out(one: Topology, plan: Plan) -> None:
    outcome = DirectProvisioner(one).apply(plan)
    assert outcome.is_complete, outcome


def may(broker: EmbeddedCluster, name: str, operation: AclOperation, prefixed: bool = False) -> AclBinding:
    kind = ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL
    one = AclBinding(ResourceType.TOPIC, name, kind, "User:alice", "*", operation, AclPermissionType.ALLOW)
    grant(broker, [one])
    return one


def written(broker: EmbeddedCluster, user: str, topic: str) -> bool:
    """Whether a user may write a record there."""
    failed: list[KafkaError] = []

    def note(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": user,
            "sasl.password": USERS[user],
            "message.timeout.ms": int(ANSWER_SECONDS * 1000),
            "log_level": "2",
        }
    )
    producer.produce(topic, b"x", on_delivery=note)
    assert producer.flush(ANSWER_SECONDS) == 0
    for error in failed:
        if error.code() != KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise KafkaException(error)
    return not failed


def becomes(broker: EmbeddedCluster, topic: str, expected: dict[str, bool]) -> None:
    """Wait until the brokers go by the ACLs: who may write is who is to."""
    eventually(
        "the brokers go by the ACLs",
        lambda: {user: written(broker, user, topic) for user in expected},
        lambda found: found == expected,
    )


def standing(broker: EmbeddedCluster) -> set[str]:
    client = admin(broker)
    found = client.describe_acls(bindings.EVERY, request_timeout=ANSWER_SECONDS).result(ANSWER_SECONDS)
    return {str(one) for one in map(bindings.from_kafka, found) if one is not None}


def test_who_writes_originals_writes_copies_while_their_flow_is_failed_over(
    secured: EmbeddedCluster, topic_name: str
) -> None:
    one, original = topology(secured, topic_name), f"{topic_name}-one"
    copy = f"{SOURCE}.{original}"
    create(secured, original, 1)
    may(secured, original, AclOperation.WRITE)
    may(secured, topic_name, AclOperation.READ, prefixed=True)
    carry_out(one, plan_of(one))
    becomes(secured, original, {"alice": True})
    becomes(secured, copy, {"alice": False, "mirror": True})
    before = standing(secured)

    carry_out(one, failover_acl_plan(one, observe(one, [TARGET]), FLOW, failed_over=True))
    becomes(secured, copy, {"alice": True, "mirror": False})
    failovers, over = Failovers(one.clusters[TARGET], topic_name), FailedOver(FLOW, "over", time.time(), "me@here", {})
    failovers.put(over)
    assert observe(one, [TARGET])[TARGET].failed_over == {FLOW: over}
    there = plan_of(one)
    assert there.changes_nothing, there

    carry_out(one, failover_acl_plan(one, observe(one, [TARGET]), FLOW, failed_over=False))
    failovers.forget(over)
    failovers.close()
    becomes(secured, copy, {"alice": False, "mirror": True})
    assert standing(secured) == before
    assert plan_of(one).changes_nothing


def test_without_its_source_only_the_replicator_is_withdrawn(secured: EmbeddedCluster, topic_name: str) -> None:
    one, original = topology(secured, topic_name), f"{topic_name}-one"
    create(secured, original, 1)
    may(secured, original, AclOperation.WRITE)
    carry_out(one, plan_of(one))
    observed, unseen = observe_owned(one, [TARGET])
    assert unseen == []
    plan = failover_acl_plan(one, observed, FLOW, failed_over=True)
    assert {step.binding.principal for step in plan.steps if hasattr(step, "binding")} == {"User:mirror"}
    carry_out(one, plan)
    becomes(secured, f"{SOURCE}.{original}", {"alice": False, "mirror": False})
    # An apply that sees the source follows what is there.
    failovers, over = Failovers(one.clusters[TARGET], topic_name), FailedOver(FLOW, "over", time.time(), "me@here", {})
    failovers.put(over)
    failovers.close()
    carry_out(one, plan_of(one))
    becomes(secured, f"{SOURCE}.{original}", {"alice": True, "mirror": False})


def test_the_commands_move_them_over_and_back(
    secured: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, original = topology(secured, topic_name), f"{topic_name}-one"
    copied = f"{SOURCE}.{original}"

    def copy_back(_topology: Topology, coming: Failback, plan: FailbackPlan) -> None:
        for spec in coming.specs(plan, new_run()):
            copy(spec)

    monkeypatch.setattr(failback, "_copy_back", copy_back)
    for command in (failover, failback):
        monkeypatch.setattr(command, "load_topology", lambda _files: one)
    create(secured, original, 1)
    may(secured, original, AclOperation.WRITE)
    carry_out(one, plan_of(one))
    becomes(secured, copied, {"alice": False, "mirror": True})
    before = standing(secured)
    assert main(["failover", "any.yaml", "--flow", FLOW, "--yes"]) == 0
    becomes(secured, copied, {"alice": True, "mirror": False})
    assert main(["failback", "any.yaml", "--flow", FLOW, "--yes"]) == 0
    becomes(secured, copied, {"alice": False, "mirror": True})
    assert standing(secured) == before
