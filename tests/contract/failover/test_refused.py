"""Counting, keeping and making anew, for somebody who may not: operation, resource, user and cluster are named."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AclOperation, ResourceType

from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.failover.topics.diverged import Part, counted, export_files, export_topic
from reconciler.failover.topics.recreation import recreate
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import state_names
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from tests.support.clusters.kafka import VISIBLE_SECONDS, create, topic_id
from tests.support.security.acls import allow, as_user

T = TypeVar("T")

SECONDS = 300.0
USERS = {"admin": "admin-secret", "guest": "guest-secret"}
GROUP, TOPIC = ResourceType.GROUP, ResourceType.TOPIC


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("secured", ClusterOptions(users=USERS)) as cluster:
        yield cluster


@pytest.fixture
def guest(secured: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    for name, password in USERS.items():
        monkeypatch.setenv(f"{name.upper()}_PASSWORD", password)
    return as_user("east", secured, "guest")


def refused(work: Callable[[], object], operation: str, resource: str) -> None:
    """Wait until what was allowed before is in force, and this is what is lacking."""
    said = f"user guest is not allowed {operation} on {resource}"
    deadline = time.monotonic() + VISIBLE_SECONDS
    while True:
        with pytest.raises(EnvironmentFault) as raised:
            work()
        (problem,) = raised.value.problems
        if problem.message == said or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    assert (problem.code, problem.where.startswith("cluster east"), problem.message) == ("AB313", True, said)


def allowed(work: Callable[[], T]) -> T:
    """Return what it returns once what was allowed is in force."""
    deadline = time.monotonic() + VISIBLE_SECONDS
    while True:
        try:
            return work()
        except EnvironmentFault:
            if time.monotonic() > deadline:
                raise
        time.sleep(0.1)


def test_each_thing_that_is_missing_is_named(
    secured: EmbeddedCluster, guest: Cluster, topic_name: str, tmp_path: Path
) -> None:
    create(secured, topic_name)
    producer = Producer(secured.client_config() | {"log_level": "2"})
    producer.produce(topic_name, b"value")
    assert producer.flush(SECONDS) == 0
    part, kept = Part(topic_name, 0, 0, 1), f"kept-{topic_name}"
    refused(lambda: counted(guest, [part], SECONDS), "DESCRIBE", f"topic {topic_name}")
    allow(secured, "guest", TOPIC, topic_name, AclOperation.DESCRIBE)
    refused(lambda: counted(guest, [part], SECONDS), "READ", f"topic {topic_name}")
    refused(lambda: export_files(guest, [part], tmp_path, SECONDS), "READ", f"topic {topic_name}")
    assert list(tmp_path.iterdir()) == []
    allow(secured, "guest", TOPIC, topic_name, AclOperation.READ)
    assert allowed(lambda: counted(guest, [part], SECONDS)) == {part: 1}

    create(secured, kept)
    refused(lambda: export_topic(guest, [part], guest, kept, SECONDS), "DESCRIBE", f"topic {kept}")
    allow(secured, "guest", TOPIC, kept, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    refused(lambda: export_topic(guest, [part], guest, kept, SECONDS), "WRITE", f"topic {kept}")
    refused(lambda: export_topic(guest, [part], guest, f"{kept}-2", SECONDS), "CREATE", f"topic {kept}-2")
    allow(secured, "guest", TOPIC, kept, AclOperation.WRITE)
    assert allowed(lambda: export_topic(guest, [part], guest, kept, SECONDS)) == 1


def test_what_may_not_be_deleted_stays_and_what_it_was_stays_on_record(
    secured: EmbeddedCluster, guest: Cluster, topic_name: str
) -> None:
    create(secured, topic_name)
    before = topic_id(secured, topic_name)
    Journal(as_user("east", secured, "admin"), own("tests").owned).ensure()
    allow(secured, "guest", TOPIC, state_names("tests").owned, AclOperation.READ, AclOperation.WRITE)
    refused(lambda: recreate(guest, "tests", topic_name), "DESCRIBE", f"topic {topic_name}")
    allow(secured, "guest", TOPIC, topic_name, AclOperation.DESCRIBE)
    refused(lambda: recreate(guest, "tests", topic_name), "DESCRIBE_CONFIGS", f"topic {topic_name}")
    allow(secured, "guest", TOPIC, topic_name, AclOperation.DESCRIBE_CONFIGS)
    refused(lambda: recreate(guest, "tests", topic_name), "DELETE", f"topic {topic_name}")
    assert topic_id(secured, topic_name) == before
    allow(secured, "guest", TOPIC, topic_name, AclOperation.DELETE)
    refused(lambda: recreate(guest, "tests", topic_name), "CREATE", f"topic {topic_name}")
    allow(secured, "guest", TOPIC, topic_name, AclOperation.CREATE)
    anew = allowed(lambda: recreate(guest, "tests", topic_name))
    assert anew == topic_id(secured, topic_name) != before
