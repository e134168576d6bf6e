"""Secured clusters as files declare them: references of every kind, versions of TLS, and token providers of users."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation

from reconciler.embedded import ClusterOptions, EmbeddedCluster, running
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import OAuth, Security
from reconciler.model.declared.cluster import Cluster
from reconciler.observe.connection import Connection
from tests.support.clusters.kafka import allow, create
from tests.support.security.secured import write_and_read
from tests.support.security.token_classes import install
from tests.support.wire.tls import reference

USERS = {"admin": "admin-secret", "mirror": "mirror-secret"}
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE


@pytest.fixture(scope="module")
def east() -> Iterator[EmbeddedCluster]:
    logins = ClusterOptions(users=USERS, tls=True, mechanisms=("PLAIN", "OAUTHBEARER"))
    with running(EmbeddedCluster("east", logins)) as (cluster,):
        yield cluster


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRROR_PASSWORD", USERS["mirror"])


def test_both_clients_log_in_with_tokens_of_a_provider(
    east: EmbeddedCluster, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(install(tmp_path)))
    create(east, topic_name)
    allow(east, "mirror", [topic_name], READ, WRITE, DESCRIBE)
    monkeypatch.setenv("WHO", "mirror")
    # A token for ten seconds: clients that live longer get another one meanwhile, and a busy machine uses it in time.
    options = (("user", Reference("env", "WHO")), ("life", "10"))
    extensions = (("logicalCluster", "lkc-1"), ("identityPoolId", "pool-1"))
    oauth = OAuth(token_provider="unsigned", token_provider_options=options, extensions=extensions)
    cluster = Cluster(
        "east", (east.bootstrap,), security=Security("SASL_SSL", "OAUTHBEARER", ca=reference(east.ca), oauth=oauth)
    )
    assert topic_name in Connection(cluster).metadata.topics
    assert write_and_read(cluster, topic_name) == (0, 2)
    first = cluster.token()
    while cluster.token() is first:
        assert time.time() < first.expires, "it is not asked for anew before it ends"
    assert write_and_read(cluster, topic_name) == (0, 4)


def test_both_clients_speak_tls_as_it_is_declared(
    east: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(east, topic_name)
    allow(east, "mirror", [topic_name], READ, WRITE, DESCRIBE)
    # Everything by reference, certificates as text; the certificate of the broker has another name.
    monkeypatch.setenv("EAST_BROKERS", f"localhost:{east.bootstrap.rpartition(':')[2]}")
    monkeypatch.setenv("EAST_CA", east.ca.read_text())
    monkeypatch.setenv("MIRROR", "mirror")
    ca, password = Reference("env", "EAST_CA"), Reference("env", "MIRROR_PASSWORD")
    secured = Security("SASL_SSL", "PLAIN", Reference("env", "MIRROR"), password, ca)
    elsewhere = Cluster("east", (Reference("env", "EAST_BROKERS"),), security=secured)
    with pytest.raises(EnvironmentFault, match="not accepted"):
        Connection(elsewhere)
    newest = replace(secured, verify_hostname=False, tls_protocols=("TLSv1.3",))
    suites = replace(secured, verify_hostname=False, ciphers=("ECDHE-ECDSA-AES256-GCM-SHA384",))
    for number, security in enumerate((newest, suites), 1):
        cluster = replace(elsewhere, security=security)
        assert topic_name in Connection(cluster).metadata.topics
        assert write_and_read(cluster, topic_name) == (0, 2 * number)
