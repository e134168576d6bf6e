"""What a real cluster does not allow, or already holds, is an error of the plan before any record is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AclOperation, ResourceType

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.base.errors import EnvironmentFault, Problem, Refused
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.names.selection import Selection
from reconciler.model.planning.padding import Padding
from reconciler.model.planning.steps import CreateTopic, Plan
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.tasks.spec import FlowSpec
from reconciler.observe.registered import why_no_transactions
from reconciler.observe.topology import observe
from reconciler.operate.flows.following import growing
from reconciler.plan.build import build_plan
from reconciler.provision.direct import DirectProvisioner
from reconciler.replicator.driver.refresh import Refresh
from reconciler.replicator.partition.shares import Place
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.wire import Loop, Wire
from reconciler.wire.requests.transactions import was_used
from tests.support.clusters.kafka import ANSWER_SECONDS, admin, create, declared
from tests.support.replicator.announced import announced
from tests.support.replicator.copying import Running
from tests.support.replicator.translated import assert_in_order, assert_synced
from tests.support.security.acls import allow

SOURCE, TARGET = "north", "south"
USERS = {
    "admin": "admin-secret",
    "mirror": "mirror-secret",
    "helper": "helper-secret",
    "guest": "guest-secret",
    "plain": "plain-secret",
}
READ, WRITE, CREATE = AclOperation.READ, AclOperation.WRITE, AclOperation.CREATE
DESCRIBE, DESCRIBE_CONFIGS = AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("secured", ClusterOptions(users=USERS)) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for user, password in USERS.items():
        monkeypatch.setenv(f"{user.upper()}_PASSWORD", password)


def topology(source: EmbeddedCluster, target: Cluster, topic: str, **fields: object) -> Topology:
    flow = replace(Flow("north-south", SOURCE, TARGET, Selection((topic,))), **fields)  # type: ignore[arg-type]
    return Topology(topic, {SOURCE: declared(SOURCE, source), TARGET: target}, (flow,))


def as_user(broker: EmbeddedCluster, user: str) -> Cluster:
    security = Security("SASL_PLAINTEXT", "PLAIN", user, Reference("env", f"{user.upper()}_PASSWORD"))
    return Cluster(TARGET, tuple(broker.bootstrap.split(",")), security=security)


def plan_of(one: Topology) -> Plan:
    return build_plan(one, observe(one, [TARGET]), [TARGET])


def fault(one: Topology) -> Problem:
    with pytest.raises(EnvironmentFault) as raised:
        plan_of(one)
    (problem,) = raised.value.problems
    return problem


def fill(broker: EmbeddedCluster, topic: str, records: int) -> None:
    producer = Producer(broker.client_config() | {"log_level": "2"})
    for number in range(records):
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(ANSWER_SECONDS) == 0


def may_plan(broker: EmbeddedCluster, user: str, topic: str) -> None:
    """Allow what `plan` and `apply` need, and nothing of what replication needs."""
    allow(broker, user, ResourceType.TOPIC, "anabranch.", READ, WRITE, CREATE, DESCRIBE, DESCRIBE_CONFIGS)
    allow(broker, user, ResourceType.TOPIC, f"{SOURCE}.{topic}", CREATE, DESCRIBE, DESCRIBE_CONFIGS)


@pytest.mark.parametrize(
    ("settings", "records", "said"),
    [
        ({}, 3, "; it holds 3 offsets of its own, "),
        ({"message.timestamp.type": "LogAppendTime"}, 0, "message.timestamp.type is LogAppendTime, not CreateTime"),
        ({"compression.type": "gzip"}, 0, "compression.type is gzip, not producer"),
        ({"message.timestamp.before.max.ms": "5"}, 0, "message.timestamp.before.max.ms is 5, below the maximum"),
    ],
)
def test_a_remote_topic_that_stands_there_already_is_refused_with_what_is_wrong_with_it(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    settings: dict[str, str],
    records: int,
    said: str,
) -> None:
    create(source_cluster, topic_name)
    create(target_cluster, f"{SOURCE}.{topic_name}", configs=settings)
    fill(target_cluster, f"{SOURCE}.{topic_name}", records)
    with pytest.raises(Refused) as raised:
        plan_of(topology(source_cluster, declared(TARGET, target_cluster), topic_name))
    (problem,) = raised.value.problems
    assert (problem.code, problem.where.partition(", ")[2]) == ("AB401", f"topic {SOURCE}.{topic_name}")
    assert said in problem.message


def test_where_nothing_is_forbidden_markers_fill_gaps(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    one = topology(source_cluster, declared(TARGET, target_cluster), topic_name, fill="markers")
    access = observe(one, [TARGET])[TARGET].access
    assert (access.marker_operation, access.refusals) == ("ALTER", ())
    (planned,) = plan_of(one).clusters[0].flows
    assert (planned.offsets, planned.fill, planned.fill_reason) == ("identical", "markers", "exact")


def test_a_log_that_was_trimmed_is_padded(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 2)
    fill(source_cluster, topic_name, 50)
    client = admin(source_cluster)
    (trimmed,) = client.delete_records([TopicPartition(topic_name, 0, 40)]).values()
    trimmed.result(ANSWER_SECONDS)
    one = topology(source_cluster, declared(TARGET, target_cluster), topic_name)
    seen = observe(one, [TARGET])[SOURCE].topics[topic_name]
    assert (seen.starts, seen.ends) == ((40, 0), (50, 0))
    (planned,) = plan_of(one).clusters[0].flows
    assert planned.padding == Padding(40, 1)
    (step,) = (step for step in plan_of(one).steps if isinstance(step, CreateTopic))
    assert step.topic.operations == ("READ", "WRITE", "DESCRIBE", "DELETE")


def test_two_sources_of_one_copy_have_translated_offsets_there_and_others_identical_ones(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    create(source_cluster, f"{topic_name}-own")
    topics, identity = Selection((f"{topic_name}.*",)), ReplicationPolicy("identity")
    sources = {alias: declared(alias, source_cluster) for alias in ("a", "b")}
    flows = (
        Flow("a-south", "a", TARGET, topics, identity),
        Flow("b-south", "b", TARGET, Selection((topic_name,)), identity),
    )
    one = Topology(topic_name, {**sources, TARGET: declared(TARGET, target_cluster)}, flows)
    plan = plan_of(one)
    assert DirectProvisioner(one).apply(plan).is_complete
    assert plan.clusters[0].not_started == ()
    there = observe(one, [TARGET])[TARGET]
    modes = {name: record.offsets for name, record in there.owned.items() if name.startswith(topic_name)}
    assert modes == {topic_name: "translated", f"{topic_name}-own": "identical"}
    assert plan_of(one).is_empty


def test_missing_permissions_are_said_one_after_the_other_until_all_are_granted(
    source_cluster: EmbeddedCluster, secured: EmbeddedCluster, topic_name: str
) -> None:
    remote = f"{SOURCE}.{topic_name}"
    create(source_cluster, topic_name)
    may_plan(secured, "mirror", topic_name)
    one = topology(source_cluster, as_user(secured, "mirror"), topic_name)

    group = f"anabranch.{topic_name}.north-south"
    with pytest.raises(EnvironmentFault) as raised:
        plan_of(one)
    assert {(problem.code, problem.where) for problem in raised.value.problems} == {
        ("AB360", one.clusters[TARGET].where)
    }
    assert [problem.message for problem in raised.value.problems] == [
        f"user mirror is not allowed READ on group {group}, which flow north-south needs",
        f"user mirror is not allowed WRITE on transactional ids {group}.* (a prefix), which flow north-south needs",
    ]
    allow(secured, "mirror", ResourceType.TRANSACTIONAL_ID, f"{group}.", WRITE)
    assert fault(one).message == f"user mirror is not allowed READ on group {group}, which flow north-south needs"
    allow(secured, "mirror", ResourceType.GROUP, group, READ)

    # Nobody can tell of a topic that does not exist: it is looked at when it is made.
    plan = plan_of(one)
    assert plan.clusters[0].flows[0].fill == "transactions"
    (failure,) = DirectProvisioner(one).apply(plan).failed
    assert (failure.problem.code, failure.step.name) == ("AB360", remote)
    assert "user mirror is not allowed READ and WRITE on it" in failure.problem.message
    assert fault(one).message == (
        f"user mirror is not allowed READ and WRITE on topic {remote}, which flow north-south needs"
    )

    allow(secured, "mirror", ResourceType.TOPIC, remote, READ, WRITE)
    assert plan_of(one).is_empty


def test_transactional_ids_of_all_flows_are_checked_at_once_and_none_is_used(
    secured: EmbeddedCluster, topic_name: str
) -> None:
    allow(secured, "guest", ResourceType.TRANSACTIONAL_ID, f"{topic_name}.may", WRITE)
    # Their coordinator may be looked up, and no more.
    allow(secured, "guest", ResourceType.TRANSACTIONAL_ID, f"{topic_name}.describe", DESCRIBE)
    ids = {kind: [f"{topic_name}.{kind}.{number}" for number in range(20)] for kind in ("may", "describe", "not")}
    guest, everyone = as_user(secured, "guest"), [name for names in ids.values() for name in names]
    assert why_no_transactions(guest, everyone) == dict.fromkeys([*ids["describe"], *ids["not"]], "refused")
    assert why_no_transactions(as_user(secured, "admin"), everyone) == {}
    assert why_no_transactions(Cluster(TARGET, ("127.0.0.1:1",)), everyone) == {}
    loop = Loop()
    wire = Wire(loop, as_user(secured, "admin"), "tests", 30.0)

    async def used() -> None:
        await wire.connect()
        assert [name for name in everyone if await was_used(wire, name)] == []

    loop.run(used)
    wire.close()
    loop.close()


def test_who_may_use_no_transactional_ids_copies_at_least_once(
    source_cluster: EmbeddedCluster, secured: EmbeddedCluster, topic_name: str
) -> None:
    """Refused where each record must count once; else planned, applied, and copied by that very user."""
    create(source_cluster, topic_name, 2)
    fill(source_cluster, topic_name, 100)
    may_plan(secured, "plain", topic_name)
    allow(secured, "plain", ResourceType.TOPIC, f"{SOURCE}.{topic_name}", READ, WRITE)
    allow(secured, "plain", ResourceType.TOPIC, syncs_topic(SOURCE), CREATE, WRITE, DESCRIBE)
    allow(secured, "plain", ResourceType.GROUP, "anabranch.", READ)
    target = as_user(secured, "plain")
    refused = fault(topology(source_cluster, target, topic_name, offsets="translated"))
    assert refused.code == "AB360"
    assert "user plain is not allowed WRITE on transactional ids" in refused.message
    assert "`delivery: at-least-once`" in refused.remedy
    assert f"{SOURCE}.{topic_name}" not in admin(secured).list_topics(timeout=ANSWER_SECONDS).topics

    one = topology(source_cluster, target, topic_name, delivery="at-least-once")
    plan = plan_of(one)
    assert plan.clusters[0].flows[0].offsets == "translated"
    assert DirectProvisioner(one).apply(plan).is_complete
    assert plan_of(one).is_empty
    (flow,) = one.flows
    create(secured, syncs_topic(SOURCE), 1, {"cleanup.policy": "compact"})
    spec = FlowSpec.compile(one, flow, topic_name)
    places = [Place(topic_name, number, f"{SOURCE}.{topic_name}", "translated") for number in range(2)]
    with Running(spec, places, as_user(secured, "admin")) as copying:
        copying.wait(lambda status: [part.position for part in status.partitions] == [100, 0])
    overseen = replace(spec, target=as_user(secured, "admin"))
    assert assert_in_order(overseen, topic_name, 2) == 100
    assert_synced(spec.source, topic_name, overseen.target, f"{SOURCE}.{topic_name}")


def test_markers_need_alter_on_the_cluster(
    source_cluster: EmbeddedCluster, secured: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    may_plan(secured, "helper", topic_name)
    allow(secured, "helper", ResourceType.TRANSACTIONAL_ID, "anabranch.", WRITE)
    allow(secured, "helper", ResourceType.GROUP, "anabranch.", READ)
    one = topology(source_cluster, as_user(secured, "helper"), topic_name, fill="markers")
    refused = fault(one)
    assert refused.code == "AB362"
    assert "user helper is not allowed ALTER on the cluster" in refused.message
    assert f"{SOURCE}.{topic_name}" not in admin(secured).list_topics(timeout=ANSWER_SECONDS).topics

    allow(secured, "helper", ResourceType.BROKER, "kafka-cluster", AclOperation.ALTER)
    (planned,) = plan_of(one).clusters[0].flows
    assert (planned.fill, planned.fill_reason) == ("markers", "exact")
    assert observe(one, [TARGET])[TARGET].access.operations == {"ALTER", "DESCRIBE"}


def test_without_permission_to_look_copying_begins_only_where_nothing_is_to_be_made(
    source_cluster: EmbeddedCluster, secured: EmbeddedCluster, topic_name: str
) -> None:
    create(source_cluster, topic_name)
    allow(secured, "guest", ResourceType.TOPIC, "anabranch.", READ, WRITE, CREATE, DESCRIBE)
    one = topology(source_cluster, as_user(secured, "guest"), topic_name)
    (flow,) = one.flows
    for make in (True, False):
        said: list[str] = []
        Journal(one.clusters[TARGET], own(one.name).control).ensure()
        spec = FlowSpec.compile(one, flow, f"{topic_name}-{make}")
        Refresh(spec, growing(one, make), said.append, said.append).look()
        found = announced(spec.target, spec.seal)
        assert found is not None
        assert bool(found["topics"]) is not make
        assert any(
            f"user guest is not allowed DESCRIBE on topic {SOURCE}.{topic_name}" in one_said for one_said in said
        )
