"""Random sets of rules on a secured cluster, followed to another one: what its authorizer lets two users do.

The source's authorizer is asked as well, and both are held against the model that plans go by.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.acls.authorizer import Authorizer
from reconciler.model.acls.binding import Binding, OwnedBinding
from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.planning.steps import Plan, RevokeAcl
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.observe.connection import operations_of
from reconciler.observe.topology import observe
from reconciler.plan.build import build_plan
from reconciler.provision.direct import DirectProvisioner
from reconciler.state.confluent import bindings
from reconciler.state.ownership import Ownership
from tests.support.clusters.kafka import ANSWER_SECONDS, VISIBLE_SECONDS, admin, create, grant, names
from tests.support.security.acl_worlds import CHECKED, HERE, MATCHING, rules
from tests.support.security.acls import as_user

SOURCE, TARGET = "north", "south"
USERS = {user: f"{user}-secret" for user in ("admin", "alice", "bob")}
PEOPLE = ("alice", "bob")
TOPICS = ("pay", "pay.salaries", "orders", "users")
COPIES = {"pay": "north.pay", "pay.salaries": "north.pay.salaries", "orders": "orders"}
"""By original; the copy of `users` is of a flow that follows no ACLs."""
CLOSED = ("north.users", "north.private")
READING = frozenset(CHECKED) - {"WRITE"}


@pytest.fixture(scope="module")
def north() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("rules-north", ClusterOptions(users=USERS)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def south() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("rules-south", ClusterOptions(users=USERS)) as cluster:
        yield cluster


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 58), marks=pytest.mark.long)], ids=["few", "many"])
def test_what_originals_allow_is_what_copies_allow(
    north: EmbeddedCluster, south: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    for user, password in USERS.items():
        monkeypatch.setenv(f"{user.upper()}_PASSWORD", password)
    _create(north, TOPICS)
    _create(south, ["north.private"])
    topology = _topology(north, south)
    _apply(topology)
    producer = Producer(south.client_config())
    for copy in COPIES.values():
        producer.produce(copy, b"x")
    assert producer.flush(ANSWER_SECONDS) == 0
    asked = {(side.name, user): _client(side, user) for side in (north, south) for user in PEOPLE}
    allowed = narrowed = 0
    for seed in seeds:
        random = Random(seed)
        given = frozenset(one for one in rules(random, random.randint(2, 7), TOPICS) if one.kind == "topic")
        _replace_acls(north, given)
        if seed % 10 == 3:
            narrowed += _with_former_grant(topology, south)
        _apply(topology)
        if seed % 10 == 3:
            assert _plan(topology).changes_nothing
        model = Authorizer(given, takes_ranges=True)
        for user in PEOPLE:
            there = _operations(asked[north.name, user], TOPICS)
            here = _operations(asked[south.name, user], (*COPIES.values(), *CLOSED))
            for name in TOPICS:
                expected = {one for one in CHECKED if model.allows(f"User:{user}", one, name, HERE)}
                assert there[name] == (expected if "DESCRIBE" in expected else set()), f"seed {seed}: {user}, {name}"
            for original, copy in COPIES.items():
                assert here[copy] <= there[original] & READING, f"seed {seed}: {user}, {copy}"
                if not any(one.permission == "DENY" and one.principal == "User:*" for one in model.about(original)):
                    read = {one for one in there[original] & READING if _follows(model, user, one, original)}
                    assert here[copy] >= read, f"seed {seed}: {user}, {copy}"
                allowed += "READ" in here[copy]
            assert not any(here[name] for name in CLOSED), f"seed {seed}: {user}"
        if seed % 10 == 0:
            found = _operations(asked[south.name, "alice"], tuple(COPIES.values()))
            for original, copy in COPIES.items():
                is_read = _reads(south, copy)
                assert is_read <= model.allows("User:alice", "READ", original, HERE), f"seed {seed}: {copy}"
                assert is_read >= ("READ" in found[copy]), f"seed {seed}: {copy}"
    assert allowed > len(seeds) // 2
    assert narrowed == len([seed for seed in seeds if seed % 10 == 3])


def _create(broker: EmbeddedCluster, topics: Sequence[str]) -> None:
    for name in set(topics) - names(broker):
        create(broker, name)


def _topology(north: EmbeddedCluster, south: EmbeddedCluster) -> Topology:
    clusters = {SOURCE: as_user(SOURCE, north, "admin"), TARGET: as_user(TARGET, south, "admin")}
    flows = (
        Flow("pay", SOURCE, TARGET, Selection(("pay.*",))),
        replace(Flow("orders", SOURCE, TARGET, Selection(("orders",))), policy=ReplicationPolicy("identity")),
        replace(Flow("vault", SOURCE, TARGET, Selection(("users",))), acls=False),
    )
    return Topology("rules", clusters, flows)


def _plan(topology: Topology) -> Plan:
    return build_plan(topology, observe(topology, [TARGET]), [TARGET])


def _apply(topology: Topology) -> None:
    outcome = DirectProvisioner(topology).apply(_plan(topology))
    assert outcome.is_complete, outcome


def _with_former_grant(topology: Topology, south: EmbeddedCluster) -> bool:
    """Grant a prefix of copies as an older release did; tell whether the plan takes it back."""
    wide = Binding("topic", ResourcePattern("north.", prefixed=True), "User:alice", "READ")
    Ownership(topology.clusters[TARGET], topology.name).write_bindings([OwnedBinding(wide, topology.name, "pay")])
    grant(south, [bindings.to_kafka(wide)])
    taken = [step for step in _plan(topology).steps if isinstance(step, RevokeAcl) and step.cause == "wide"]
    return [step.binding for step in taken] == [wide]


def _follows(model: Authorizer, user: str, operation: str, topic: str) -> bool:
    """Tell whether what a user may do follows from an ACL about it, or one that an ACL about reading gives."""
    return any(
        one.permission == "ALLOW"
        and one.principal in (f"User:{user}", "User:*")
        and HERE in MATCHING[one.host]
        and (one.operation in (operation, "ALL") or (one.operation == "READ" and operation == "DESCRIBE"))
        for one in model.about(topic)
    )


def _replace_acls(broker: EmbeddedCluster, wanted: frozenset[Binding]) -> None:
    client = admin(broker)
    client.delete_acls([bindings.EVERY])[bindings.EVERY].result(ANSWER_SECONDS)
    for future in client.create_acls([bindings.to_kafka(one) for one in sorted(wanted)]).values():
        future.result(ANSWER_SECONDS)
    deadline = time.monotonic() + VISIBLE_SECONDS
    while True:
        found = client.describe_acls(bindings.EVERY, request_timeout=ANSWER_SECONDS).result(ANSWER_SECONDS)
        if frozenset(map(bindings.from_kafka, found)) == wanted:
            return
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _client(broker: EmbeddedCluster, user: str) -> AdminClient:
    return AdminClient(broker.client_config(user) | {"log_level": "2"})


def _operations(client: AdminClient, names: Sequence[str]) -> dict[str, set[str]]:
    """Return what is allowed on topics, of `CHECKED`; nothing where not even DESCRIBE is."""
    futures = client.describe_topics(
        TopicCollection(list(names)), include_authorized_operations=True, request_timeout=ANSWER_SECONDS
    )
    found: dict[str, set[str]] = {}
    for name, future in futures.items():
        try:
            found[name] = set(operations_of(future.result(ANSWER_SECONDS)) or ()) & set(CHECKED)
        except KafkaException as error:
            assert error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED, error
            found[name] = set()
    return found


def _reads(broker: EmbeddedCluster, topic: str) -> bool:
    """Read the record of a topic as alice; tell whether she is let in."""
    client = Consumer(broker.client_config("alice") | {"group.id": "none", "log_level": "2"})
    try:
        if client.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic].error is not None:
            return False
        client.assign([TopicPartition(topic, 0, 0)])
        deadline = time.monotonic() + VISIBLE_SECONDS
        while True:
            message = client.poll(0.2)
            if message is not None and message.error() is None:
                return True
            if message is not None and message.error().code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                return False
            assert time.monotonic() < deadline, message and message.error()
    finally:
        client.close()
