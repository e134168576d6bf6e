"""Kerberos: brokers of a real realm, a principal for each cluster, and what is refused.

Where the realm's programs or the package gssapi are not installed, these are skipped; what needs neither is tested
beside the other logins.
"""

from __future__ import annotations

import importlib.util
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, AdminClient

from reconciler.embedded import ClusterOptions, EmbeddedCluster, running
from reconciler.embedded.settings import QUICK_JVM
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Kerberos, Security
from reconciler.model.declared.cluster import Cluster
from reconciler.observe.connection import Connection
from reconciler.replicator.partition.shares import Place
from reconciler.state.confluent import clients
from reconciler.wire import NotLetIn
from tests.support.clusters.kafka import allow, create
from tests.support.replicator.copying import REMOTE, Running, at, fill, identical, spec_of
from tests.support.security import kdc
from tests.support.security.kdc import REALM, Realm
from tests.support.wire.tls import reference
from tests.support.wire.wires import ask

needed = [
    pytest.mark.skipif(kdc.missing() is not None, reason=f"no realm can be served: {kdc.missing()}"),
    pytest.mark.skipif(importlib.util.find_spec("gssapi") is None, reason="the package gssapi is not installed"),
]
pytestmark = needed

SECONDS = 30.0
READ, DESCRIBE, WRITE = AclOperation.READ, AclOperation.DESCRIBE, AclOperation.WRITE
_MODULE = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"


def has_kerberos() -> bool:
    """Whether confluent-kafka was built with Kerberos."""
    security = Security("SASL_PLAINTEXT", "GSSAPI", kerberos=Kerberos("anybody"))
    try:
        clients.make(AdminClient, Cluster("nowhere", ("127.0.0.1:1",), security=security), {"log_level": "0"})
    except EnvironmentFault:
        return False
    return True


def options(realm: Realm, keytab: Path) -> ClusterOptions:
    """Return a cluster whose clients log in with Kerberos, or as `admin` with a password."""
    login = f'{_MODULE} keyTab="{keytab}" principal="kafka/{kdc.HOST}@{REALM}";'
    return ClusterOptions(
        users={"admin": "admin-secret"},
        overrides={
            "listener.name.client.sasl.enabled.mechanisms": "PLAIN,GSSAPI",
            "listener.name.client.gssapi.sasl.jaas.config": login,
            "listener.name.client.sasl.kerberos.service.name": "kafka",
            "super.users": "User:admin;User:ANONYMOUS;User:overseer",
        },
        jvm=(*QUICK_JVM, f"-Djava.security.krb5.conf={realm.conf}"),
    )


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with kdc.serving(tmp_path_factory.mktemp("realm")) as served, pytest.MonkeyPatch.context() as patch:
        for name, value in served.environment().items():
            patch.setenv(name, value)
        yield served


@pytest.fixture(scope="module")
def both(realm: Realm) -> Iterator[tuple[EmbeddedCluster, EmbeddedCluster]]:
    keytab = realm.keytab(f"kafka/{kdc.HOST}")
    with running(
        EmbeddedCluster("east", options(realm, keytab)), EmbeddedCluster("west", options(realm, keytab))
    ) as found:
        yield found  # type: ignore[misc]


@pytest.fixture
def east(both: tuple[EmbeddedCluster, EmbeddedCluster]) -> EmbeddedCluster:
    return both[0]


@pytest.fixture
def west(both: tuple[EmbeddedCluster, EmbeddedCluster]) -> EmbeddedCluster:
    return both[1]


def declared(broker: EmbeddedCluster, principal: str, keytab: Path | None) -> Cluster:
    kerberos = Kerberos(f"{principal}@{REALM}", None if keytab is None else reference(keytab))
    return Cluster(broker.name, (broker.bootstrap,), security=Security("SASL_PLAINTEXT", "GSSAPI", kerberos=kerberos))


def overseen(broker: EmbeddedCluster) -> Cluster:
    return Cluster(broker.name, (broker.bootstrap_within,))


def may_see(cluster: Cluster, topic: str) -> bool:
    """Ask as the replicator does."""
    return ask(cluster, lambda wire: wire.topics([topic]))[topic].error == 0


def test_each_cluster_is_reached_as_its_own_principal(
    realm: Realm, east: EmbeddedCluster, west: EmbeddedCluster, topic_name: str
) -> None:
    for broker, user in ((east, "reader"), (west, "writer")):
        create(broker, f"{topic_name}-{broker.name}")
        allow(broker, user, [f"{topic_name}-{broker.name}"], DESCRIBE)
    reader, writer = realm.keytab("reader"), realm.keytab("writer/host.example")
    for _ in range(2):
        # One process, tickets of both; neither sees what the other may.
        assert may_see(declared(east, "reader", reader), f"{topic_name}-east")
        assert may_see(declared(west, "writer/host.example", writer), f"{topic_name}-west")
        assert not may_see(declared(east, "writer/host.example", writer), f"{topic_name}-east")


def test_a_flow_copies_as_a_kerberos_principal(
    realm: Realm, east: EmbeddedCluster, west: EmbeddedCluster, topic_name: str
) -> None:
    create(east, topic_name, 2)
    create(west, f"east.{topic_name}", 2, REMOTE)
    allow(east, "mirror", [topic_name], READ, DESCRIBE)
    fill(east, topic_name, 400, 2)
    source = declared(east, "mirror", realm.keytab("mirror"))
    # Commands are not asked to log in so: wheels of confluent-kafka cannot.
    spec = spec_of(source, overseen(west), topic_name)
    places = [Place(topic_name, number, f"east.{topic_name}", "identical") for number in range(2)]
    with Running(spec, places) as copying:
        copying.wait(lambda status: sum(at(status, topic_name, number).position or 0 for number in range(2)) == 400)
    assert identical(spec_of(overseen(east), overseen(west), topic_name), topic_name) == 400


@pytest.mark.parametrize(
    ("principal", "keytab", "words"),
    [
        ("stranger", "known", "gets no ticket for kafka/127.0.0.1: "),
        ("known", "missing", "missing.keytab: No such file"),
        ("known", None, "gets no ticket for kafka/127.0.0.1: "),
        ("known", "old", "gets no ticket for kafka/127.0.0.1: "),
    ],
)
def test_what_the_realm_refuses_is_named(
    realm: Realm, east: EmbeddedCluster, principal: str, keytab: str | None, words: str
) -> None:
    old = realm.keytab("known", "old.keytab")
    # New keys make the old ones worthless.
    realm.keytab("known")
    assert old.exists()
    cluster = declared(east, principal, None if keytab is None else realm.folder / f"{keytab}.keytab")
    began = time.monotonic()
    with pytest.raises(NotLetIn) as told:
        may_see(cluster, "orders")
    assert time.monotonic() - began < SECONDS
    assert cluster.where in str(told.value)
    assert words in str(told.value)


def test_keys_may_be_changed_while_tickets_run_out(realm: Realm, east: EmbeddedCluster, topic_name: str) -> None:
    create(east, topic_name)
    allow(east, "brief", [topic_name], DESCRIBE)
    keytab = realm.keytab("brief", life="3 seconds")
    cluster = declared(east, "brief", keytab)
    for _ in range(3):
        assert may_see(cluster, topic_name)
        keytab.unlink()
        realm.keytab("brief", life="3 seconds")
        assert may_see(cluster, topic_name)
        time.sleep(3.5)


def test_tickets_of_the_environment_are_taken(realm: Realm, east: EmbeddedCluster, topic_name: str) -> None:
    create(east, topic_name)
    allow(east, "visitor", [topic_name], DESCRIBE)
    keytab = realm.keytab("visitor")
    subprocess.run(["kinit", "-k", "-t", str(keytab), f"visitor@{REALM}"], check=True)
    assert may_see(declared(east, "visitor", None), topic_name)


@pytest.mark.skipif(not has_kerberos(), reason="confluent-kafka was built without Kerberos")
def test_commands_log_in_too(realm: Realm, east: EmbeddedCluster, topic_name: str) -> None:
    create(east, topic_name)
    allow(east, "planner", [topic_name], DESCRIBE)
    assert topic_name in Connection(declared(east, "planner", realm.keytab("planner"))).metadata.topics
    # Commands take whatever ticket there is.
    (realm.folder / "tickets").unlink()
    with pytest.raises(EnvironmentFault) as told:
        Connection(declared(east, "nobody", realm.keytab("somebody")))
    assert [one.code for one in told.value.problems] == ["AB312"]
    assert f"principal nobody@{REALM}" in str(told.value)


@pytest.mark.skipif(not has_kerberos(), reason="confluent-kafka was built without Kerberos")
def test_both_sides_of_a_flow_with_kerberos_alone(
    realm: Realm, east: EmbeddedCluster, west: EmbeddedCluster, topic_name: str
) -> None:
    create(east, topic_name, 2)
    create(west, f"east.{topic_name}", 2, REMOTE)
    fill(east, topic_name, 400, 2)
    keytab = realm.keytab("overseer")
    spec = spec_of(declared(east, "overseer", keytab), declared(west, "overseer", keytab), topic_name)
    with Running(spec) as copying:
        copying.wait()
    assert identical(spec, topic_name) == 400


def test_a_missing_reference_is_told_before_anybody_is_asked(east: EmbeddedCluster, tmp_path: Path) -> None:
    security = Security("SASL_PLAINTEXT", "GSSAPI", kerberos=Kerberos("mirror", Reference("file", f"{tmp_path}/none")))
    with pytest.raises(EnvironmentFault, match=r"cannot read .*/none"):
        Connection(Cluster("east", (east.bootstrap,), security=security))
