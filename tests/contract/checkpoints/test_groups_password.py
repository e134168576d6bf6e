"""Who looks after groups keeps its client for long: a password that is changed meanwhile is taken up all the same."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AclOperation

from reconciler.checkpoints.groups.groups import Groups
from reconciler.embedded import ClusterOptions, EmbeddedCluster, running
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.committed import LogBounds
from tests.support.clusters.kafka import allow, create
from tests.support.replicator.copying import fill

OLD, NEW = "mirror-secret", "a-new-one-Sq8"
SECONDS = 300.0


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    users = {"admin": "admin-secret", "mirror": OLD}
    with running(EmbeddedCluster("secured", ClusterOptions(users=users, mechanisms=("SCRAM-SHA-512",)))) as (cluster,):
        yield cluster


def test_a_password_may_be_changed(secured: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    create(secured, topic_name)
    allow(secured, "mirror", [topic_name], AclOperation.READ, AclOperation.DESCRIBE)
    fill(secured, topic_name, 10)
    monkeypatch.setenv("MIRROR_PASSWORD", OLD)
    security = Security("SASL_PLAINTEXT", "SCRAM-SHA-512", "mirror", Reference("env", "MIRROR_PASSWORD"))
    log = topic_name, 0
    groups = Groups(Cluster("secured", tuple(secured.bootstrap.split(",")), security=security))
    assert groups.bounds([log]) == {log: LogBounds(0, 10, 10)}

    secured.set_password("mirror", NEW)
    # Brokers keep connections that stand; a new broker process has none.
    secured.stop_broker()
    secured.start_broker()
    with pytest.raises(EnvironmentFault, match="does not let user mirror in") as refused:
        groups.refresh()
    assert NEW not in str(refused.value)
    monkeypatch.setenv("MIRROR_PASSWORD", NEW)
    deadline = time.monotonic() + SECONDS
    while True:
        assert time.monotonic() < deadline, "the new password is not taken up"
        try:
            groups.refresh()
        except EnvironmentFault:
            continue
        break
    assert groups.partitions[topic_name] == 1
    assert groups.bounds([log]) == {log: LogBounds(0, 10, 10)}
    assert groups.kinds() == {}
    groups.close()
