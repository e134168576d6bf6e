"""Two topologies on one target, each replicated by a user with its own ACLs: neither gets at what is the other's."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourcePatternType,
    ResourceType,
)

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.own_names import lease_group, probe_prefix, state_names, turn_group
from reconciler.model.names.selection import Selection
from reconciler.model.recorded.pauses import PauseScope
from reconciler.model.tasks.seal import Seal, new_key
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import TaskStatus
from reconciler.observe.topology import observe
from reconciler.plan.acls.requirements import needed_acls
from reconciler.plan.build import build_plan
from reconciler.provision.direct import DirectProvisioner
from reconciler.replicator.copy.producer_names import ProducerNames
from reconciler.replicator.partition.shares import Place
from reconciler.state import control
from reconciler.state.journals.home import JournalPlace, Role
from reconciler.state.journals.journal import Journal
from reconciler.state.ownership import Ownership
from reconciler.state.status import StatusReader
from reconciler.wire import BrokerError
from tests.support.clusters.kafka import ANSWER_SECONDS, create
from tests.support.replicator.copying import Running, code, fill, identical
from tests.support.security.acls import as_user, give
from tests.support.wire.wires import ask

NORTH, SOUTH, FLOW = "north", "south", "north-south"
USERS = {user: f"{user}-secret" for user in ("admin", "amy", "bob", "bobs-boss")}
RECORDS = 50
NODE = 1
_QUIET = logging.Logger("quiet", level=logging.CRITICAL + 1)
_WRITTEN: tuple[Role, ...] = ("status", "control", "copies")
_REFUSED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("tenants", ClusterOptions(users=USERS)) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    for user, password in USERS.items():
        monkeypatch.setenv(f"{user.upper().replace('-', '_')}_PASSWORD", password)


@dataclass(frozen=True)
class Tenant:
    """A topology, its user, and what it copies."""

    name: str
    user: str
    secured: EmbeddedCluster

    @property
    def topic(self) -> str:
        return f"{self.name}-orders"

    def declared(self, user: str) -> Topology:
        flow = Flow(FLOW, NORTH, SOUTH, Selection((self.topic,)))
        return Topology(self.name, {alias: as_user(alias, self.secured, user) for alias in (NORTH, SOUTH)}, (flow,))

    def seen_by(self, user: str) -> Cluster:
        return as_user(SOUTH, self.secured, user)

    def apply(self) -> None:
        """Have an administrator make all there is, and allow the user what replicating needs."""
        create(self.secured, self.topic, 2)
        one = self.declared("admin")
        assert DirectProvisioner(one).apply(build_plan(one, observe(one, [SOUTH]), [SOUTH])).is_complete
        needed = [acl for acl in needed_acls(one, one.flows) if acl.purpose == "replicate" and not acl.is_optional]
        give(self.secured, self.user, needed)

    def spec(self) -> FlowSpec:
        one = self.declared(self.user)
        return FlowSpec.compile(one, one.flows[0], uuid.uuid4().hex)


@pytest.fixture
def tenants(secured: EmbeddedCluster) -> tuple[Tenant, Tenant]:
    end = uuid.uuid4().hex[:6]
    ours, theirs = Tenant(f"a{end}", "amy", secured), Tenant(f"b{end}", "bob", secured)
    for one in (ours, theirs):
        one.apply()
    return ours, theirs


def refused(what: str, attempt: Callable[[], object]) -> str | None:
    """Return what an attempt came to, where the broker did not refuse it."""
    try:
        result = attempt()
    except BrokerError as error:
        return None if error.code in _REFUSED else f"{what}: {error}"
    except KafkaException as error:
        # What ends a producer has a code of its own. A client that is shown no leaders has nobody to ask.
        found = error.args[0]
        is_refused = found.code() in _REFUSED or "uthorization failed" in found.str()
        is_refused = is_refused or (what.startswith("truncate ") and found.str().endswith("No leaders found"))
        return None if is_refused else f"{what}: {error}"
    return f"{what}: {result}"


class Bob:
    """What a user can try who has a whole client of Kafka."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._settings = cluster.librdkafka() | {"log_level": 0}
        self._admin = AdminClient(self._settings)

    def write(self, topic: str) -> object:
        failed: list[KafkaError | None] = []
        producer = Producer(self._settings | {"message.timeout.ms": 10_000})
        producer.produce(topic, b"{}", b"key", 0, on_delivery=lambda error, _message: failed.append(error))
        producer.flush(ANSWER_SECONDS)
        if failed and failed[0] is not None:
            raise KafkaException(failed[0])
        return "written"

    def read(self, topic: str) -> object:
        with self._consumer("anabranch-unused") as consumer:
            consumer.assign([TopicPartition(topic, 0, 0)])
            message = consumer.poll(ANSWER_SECONDS)
            if message is not None and message.error() is not None:
                raise KafkaException(message.error())
            return message

    def join(self, group: str, topic: str) -> object:
        with self._consumer(group) as consumer:
            consumer.subscribe([topic])
            message = consumer.poll(ANSWER_SECONDS)
            if message is not None and message.error() is not None:
                raise KafkaException(message.error())
            return message

    def reset(self, group: str, topic: str) -> object:
        """Commit an offset for a group, as whoever is no member of it."""
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 1)])
        return self._only(self._admin.alter_consumer_group_offsets([asked]))

    def forget(self, group: str) -> object:
        return self._only(self._admin.delete_consumer_groups([group]))

    def begin(self, transactional_id: str) -> object:
        return Producer(self._settings | {"transactional.id": transactional_id}, logger=_QUIET).init_transactions(
            ANSWER_SECONDS
        )

    def delete(self, topic: str) -> object:
        return self._only(self._admin.delete_topics([topic]))

    def truncate(self, topic: str) -> object:
        return self._only(self._admin.delete_records([TopicPartition(topic, 0, 1)]))

    def grow(self, topic: str) -> object:
        return self._only(self._admin.create_partitions([NewPartitions(topic, 9)]))

    def alter(self, topic: str) -> object:
        entry = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        return self._only(self._admin.incremental_alter_configs([resource]))

    def bounds(self, topic: str) -> object:
        return ask(self._cluster, lambda wire: wire.log_end(NODE, topic, 0, -1))

    def producers(self, topic: str) -> object:
        return ask(self._cluster, lambda wire: wire.producers(NODE, topic, 0))

    def grant(self, topic: str) -> object:
        """Allow oneself more."""
        kind, allow = ResourcePatternType.LITERAL, AclPermissionType.ALLOW
        return self._only(
            self._admin.create_acls(
                [AclBinding(ResourceType.TOPIC, topic, kind, "User:bob", "*", AclOperation.ALL, allow)]
            )
        )

    def _only(self, futures: object) -> object:
        (future,) = futures.values()  # type: ignore[attr-defined]
        return future.result(ANSWER_SECONDS)

    def _consumer(self, group: str) -> Consumer:
        return Consumer(self._settings | {"group.id": group, "auto.offset.reset": "earliest"})


def test_a_replicator_gets_at_nothing_of_another_topology(tenants: tuple[Tenant, Tenant]) -> None:
    ours, theirs = tenants
    bob = Bob(theirs.seen_by("bob"))
    spec = ours.spec()
    fill(ours.secured, ours.topic, RECORDS, 2)
    with Running(spec, overseer=ours.seen_by("admin")) as copying:
        assert [code(one) for one in copying.wait().partitions] == [None, None]
        topics = [*state_names(ours.name).journals, f"{NORTH}.{ours.topic}"]
        attempts: dict[str, Callable[[], object]] = {}
        for topic in topics:
            for name in ("write", "read", "delete", "truncate", "grow", "alter", "bounds", "producers"):
                attempts[f"{name} {topic}"] = lambda name=name, topic=topic: getattr(bob, name)(topic)  # type: ignore[misc]
        for group in (lease_group(ours.name, FLOW), turn_group(ours.name, FLOW)):
            attempts[f"forget {group}"] = lambda group=group: bob.forget(group)  # type: ignore[misc]
            for name in ("join", "reset"):
                attempts[f"{name} {group}"] = lambda name=name, group=group: getattr(bob, name)(group, theirs.topic)  # type: ignore[misc]
        # That which writes to this very partition, and others that would fence or fill.
        identity, place = ProducerNames(ours.name, FLOW), Place(ours.topic, 0, f"{NORTH}.{ours.topic}")
        ids = (identity.transactional_id(place), identity.filling_id(place), f"{probe_prefix(ours.name)}trials.x")
        for one in ids:
            attempts[f"begin {one}"] = lambda one=one: bob.begin(one)  # type: ignore[misc]
        attempts["grant"] = lambda: bob.grant(topics[0])
        assert [got for what, attempt in attempts.items() if (got := refused(what, attempt))] == []
        assert len(attempts) > 40

        fill(ours.secured, ours.topic, RECORDS, 2)
        settled = copying.settled_again(running=True)
        assert {(one.lag, code(one)) for one in settled.partitions} == {(0, None)}
    assert identical(FlowSpec.compile(ours.declared("admin"), spec.flow, "x"), ours.topic) == 2 * RECORDS


def test_what_is_ones_own_may_be_written_and_the_record_of_what_is_ours_only_by_who_applies(
    tenants: tuple[Tenant, Tenant],
) -> None:
    _, theirs = tenants
    cluster = theirs.seen_by("bob")
    for role in _WRITTEN:
        assert Journal(cluster, JournalPlace(theirs.name, role)).write("key", {"n": 1}) > 0
    with pytest.raises(EnvironmentFault, match=r"not allowed WRITE on topic anabranch\..*\.owned\.internal \[?.*AB311"):
        Journal(cluster, JournalPlace(theirs.name, "owned"), 5.0).write("key", {"n": 1})


def test_what_one_topology_says_of_another_is_not_believed(tenants: tuple[Tenant, Tenant]) -> None:
    """Whoever may write all of one topology's journals writes there what would be believed in another's."""
    ours, theirs = tenants
    one, boss, admin = ours.declared("admin"), theirs.seen_by("admin"), ours.seen_by("admin")
    before = observe(one, [SOUTH])[SOUTH]
    remote = f"{NORTH}.{ours.topic}"
    (record,) = (found for found in before.owned.values() if found.name == remote)
    ownership = Ownership(boss, theirs.name)
    # That it is theirs, that it is ours and of another flow, and that what is theirs is ours to delete.
    ownership.write([replace(record, topology=theirs.name, flow="stolen")])
    ownership.write([replace(record, name=f"{NORTH}.{theirs.topic}", flow="planted")])
    seen = observe(one, [SOUTH])[SOUTH]
    assert (seen.owned[remote], seen.failed_over, seen.in_force) == (record, {}, before.in_force)
    assert f"{NORTH}.{theirs.topic}" not in {name for name, found in seen.owned.items() if found.topology == ours.name}
    assert build_plan(one, observe(one, [SOUTH]), [SOUTH]).changes_nothing

    spec = ours.spec()
    flow = spec.flow
    places = [PauseScope(FLOW), PauseScope(FLOW, ours.topic)]
    fill(ours.secured, ours.topic, RECORDS, 2)
    with Running(spec, overseer=admin) as copying:
        copying.wait()
        # In their topic, in our name: a pause, a stop, shares, and a task that says that it runs.
        journal = Journal(boss, JournalPlace(theirs.name, "control"))
        for scope in places:
            parts = [f"pause@{ours.name}", scope.flow, *([scope.topic] if scope.topic else [])]
            journal.write("/".join(parts), {"command": "pause", "time": 1.0, "flow": scope.flow, "topic": scope.topic})
        forged = Seal(theirs.name, spec.run, FLOW, new_key())
        control.stop(boss, [forged])
        control.announce(boss, forged, {"tasks": 1, "topics": {}})
        word = replace(TaskStatus.of_process(flow, "forged", "digest"), task=0, tasks=1, topology=ours.name)
        Journal(boss, JournalPlace(theirs.name, "status")).write(f"{FLOW}/0/forged", word.to_json())
        reader = StatusReader(admin, ours.name)
        assert "forged" not in {said.run for said in reader.current(5.0)}
        reader.close()
        fill(ours.secured, ours.topic, RECORDS, 2)
        assert {found.lag for found in copying.settled_again(running=True).partitions} == {0}
