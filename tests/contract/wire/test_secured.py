"""Secured clusters: every protocol and mechanism with both clients, what is refused, and secrets that change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation

from reconciler.embedded import ClusterOptions, EmbeddedCluster, running
from reconciler.embedded.certificates import Authority
from reconciler.model.base.errors import AnabranchError, EnvironmentFault
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Mechanism, OAuth, Security
from reconciler.model.declared.cluster import Cluster
from reconciler.observe.connection import Connection
from reconciler.replicator.driver import discovery
from reconciler.replicator.partition.shares import Place
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.wire import Loop, NotLetIn, Wire
from tests.support.clusters.kafka import allow, create
from tests.support.commands.command import anabranch
from tests.support.replicator.copying import REMOTE, Running, at, code, fill, identical, spec_of
from tests.support.security.secured import token, write_and_read
from tests.support.wire.tls import reference
from tests.support.wire.wires import ask

USERS = {"admin": "admin-secret", "mirror": "mirror-secret"}
WRONG, NEW = "hunter2-Sq7", "a-new-one-Sq8"
# What is wrong is named within 10 s; a busy machine gets three times as long.
SECONDS = 300.0
READ, WRITE, DESCRIBE, CREATE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE
PASSWORDS: tuple[Mechanism, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.fixture(scope="module")
def both() -> Iterator[tuple[EmbeddedCluster, EmbeddedCluster]]:
    """One cluster that asks for passwords or tokens, and one that asks for certificates."""
    logins = ClusterOptions(users=USERS, tls=True, mechanisms=(*PASSWORDS, "OAUTHBEARER"))
    with running(EmbeddedCluster("east", logins), EmbeddedCluster("west", ClusterOptions(tls=True, mutual=True))) as (
        east,
        west,
    ):
        yield east, west


@pytest.fixture
def east(both: tuple[EmbeddedCluster, EmbeddedCluster]) -> EmbeddedCluster:
    return both[0]


@pytest.fixture
def west(both: tuple[EmbeddedCluster, EmbeddedCluster]) -> EmbeddedCluster:
    return both[1]


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADMIN_PASSWORD", USERS["admin"])
    monkeypatch.setenv("MIRROR_PASSWORD", USERS["mirror"])
    monkeypatch.setenv("WRONG_PASSWORD", WRONG)
    monkeypatch.setenv("MIRROR_TOKEN", token("mirror"))


def declared(broker: EmbeddedCluster, security: Security) -> Cluster:
    return Cluster(broker.name, tuple(broker.bootstrap.split(",")), security=security)


def by_password(
    east: EmbeddedCluster,
    mechanism: Mechanism = "SCRAM-SHA-512",
    variable: str = "MIRROR_PASSWORD",
    user: str = "mirror",
) -> Cluster:
    return declared(east, Security("SASL_SSL", mechanism, user, Reference("env", variable), ca=reference(east.ca)))


def by_token(east: EmbeddedCluster) -> Cluster:
    oauth = OAuth(Reference("env", "MIRROR_TOKEN"))
    return declared(east, Security("SASL_SSL", "OAUTHBEARER", ca=reference(east.ca), oauth=oauth))


def by_certificate(west: EmbeddedCluster, name: str = "replicator", life: int = 30) -> Cluster:
    certificate, key = west.certificate(name, timedelta(days=life))
    security = Security("SSL", ca=reference(west.ca), certificate=reference(certificate), key=reference(key))
    return declared(west, security)


@pytest.mark.parametrize("mechanism", [*PASSWORDS, "OAUTHBEARER"])
def test_both_clients_log_in_over_tls(east: EmbeddedCluster, topic_name: str, mechanism: Mechanism) -> None:
    create(east, topic_name)
    allow(east, "mirror", [topic_name], READ, WRITE, DESCRIBE)
    cluster = by_token(east) if mechanism == "OAUTHBEARER" else by_password(east, mechanism)
    assert topic_name in Connection(cluster).metadata.topics
    assert write_and_read(cluster, topic_name) == (0, 2)


def test_both_clients_show_their_certificate(west: EmbeddedCluster, topic_name: str) -> None:
    create(west, topic_name)
    cluster = by_certificate(west)
    assert topic_name in Connection(cluster).metadata.topics
    assert write_and_read(cluster, topic_name) == (0, 2)


def test_a_flow_copies_between_secured_clusters_as_different_principals(
    east: EmbeddedCluster, west: EmbeddedCluster, topic_name: str
) -> None:
    create(east, topic_name, 2)
    create(west, f"east.{topic_name}", 2, REMOTE)
    allow(east, "mirror", [topic_name], READ, DESCRIBE)
    fill(east, topic_name, 400, 2)
    spec = spec_of(by_password(east), by_certificate(west), topic_name)
    with Running(spec) as copying:
        copying.wait()
        # Larger than a TLS record, in requests of many pieces.
        fill(east, topic_name, 20_000, 2)
        copying.settled_again()
    overseer = by_password(east, variable="ADMIN_PASSWORD", user="admin")
    assert identical(replace(spec, source=overseer), topic_name) == 20_400
    assert not [secret for secret in (*USERS.values(), WRONG) if secret in spec.to_json() + repr(spec)]


# --- what is refused -------------------------------------------------------------------------------------------------


def wrong_password(east: EmbeddedCluster, _west: EmbeddedCluster, _folder: Path) -> Cluster:
    return by_password(east, variable="WRONG_PASSWORD")


def wrong_plain_password(east: EmbeddedCluster, _west: EmbeddedCluster, _folder: Path) -> Cluster:
    return by_password(east, "PLAIN", variable="WRONG_PASSWORD")


def wrong_token(east: EmbeddedCluster, _west: EmbeddedCluster, folder: Path) -> Cluster:
    (folder / "token").write_text(WRONG)
    oauth = OAuth(reference(folder / "token"))
    return declared(east, Security("SASL_SSL", "OAUTHBEARER", ca=reference(east.ca), oauth=oauth))


def wrong_authority(east: EmbeddedCluster, _west: EmbeddedCluster, folder: Path) -> Cluster:
    (folder / "other.pem").write_text(Authority("other").pem)
    cluster = by_password(east)
    return replace(cluster, security=replace(cluster.security, ca=reference(folder / "other.pem")))


def other_host_name(east: EmbeddedCluster, _west: EmbeddedCluster, _folder: Path) -> Cluster:
    return replace(by_password(east), bootstrap=(f"localhost:{east.bootstrap.rpartition(':')[2]}",))


def expired_certificate(_east: EmbeddedCluster, west: EmbeddedCluster, _folder: Path) -> Cluster:
    return by_certificate(west, "expired", life=-1)


def no_certificate(_east: EmbeddedCluster, west: EmbeddedCluster, _folder: Path) -> Cluster:
    return declared(west, Security("SSL", ca=reference(west.ca)))


def tls_to_plaintext(east: EmbeddedCluster, _west: EmbeddedCluster, _folder: Path) -> Cluster:
    return replace(by_password(east), bootstrap=(east.bootstrap_within,))


def plaintext_to_tls(east: EmbeddedCluster, _west: EmbeddedCluster, _folder: Path) -> Cluster:
    return declared(east, Security())


def login_in_plaintext_to_tls(east: EmbeddedCluster, _west: EmbeddedCluster, _folder: Path) -> Cluster:
    return declared(east, Security("SASL_PLAINTEXT", "PLAIN", "mirror", Reference("env", "MIRROR_PASSWORD")))


Refused = Callable[[EmbeddedCluster, EmbeddedCluster, Path], Cluster]
REFUSED: list[tuple[Refused, str, str]] = [
    (wrong_password, "AB312", "user mirror"),
    (wrong_plain_password, "AB312", "user mirror"),
    (wrong_token, "AB312", "the owner of token file:"),
    (wrong_authority, "AB318", "user mirror cannot connect"),
    (other_host_name, "AB318", "certificate is not valid for 'localhost'"),
    (expired_certificate, "AB318", "expired.pem"),
    (no_certificate, "AB318", "an anonymous user cannot connect"),
    (tls_to_plaintext, "AB319", "does not answer as a TLS server does"),
    (plaintext_to_tls, "AB319", "it uses TLS"),
    (login_in_plaintext_to_tls, "AB319", "it uses TLS"),
]


@pytest.mark.parametrize(("refused", "expected", "words"), REFUSED, ids=[one[0].__name__ for one in REFUSED])
def test_both_clients_name_what_is_wrong(
    both: tuple[EmbeddedCluster, EmbeddedCluster],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    refused: Refused,
    expected: str,
    words: str,
) -> None:
    cluster = refused(*both, tmp_path)
    began = time.monotonic()
    with pytest.raises(EnvironmentFault) as told:
        Connection(cluster)
    assert time.monotonic() - began < SECONDS
    (problem,) = told.value.problems
    assert (problem.code, problem.where) == (expected, cluster.where)
    assert words in problem.message
    began = time.monotonic()
    with pytest.raises(NotLetIn) as lost:
        ask(cluster, lambda wire: wire.topics(["orders"]), timeout=1.0)
    assert time.monotonic() - began < SECONDS
    assert cluster.where in str(lost.value)
    assert words in str(lost.value)
    said = f"{told.value}{lost.value}{''.join(capfd.readouterr())}"
    assert not [secret for secret in (*USERS.values(), WRONG) if secret in said]


def test_a_running_task_names_what_is_wrong(
    east: EmbeddedCluster, west: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(east, topic_name)
    create(west, f"east.{topic_name}", 1, REMOTE)
    allow(east, "mirror", [topic_name], READ, DESCRIBE)
    fill(east, topic_name, 10)
    source = by_password(east, variable="CHANGED_PASSWORD")
    monkeypatch.setenv("CHANGED_PASSWORD", WRONG)
    spec = spec_of(source, by_certificate(west), topic_name)
    with pytest.raises(AnabranchError, match="does not let user mirror in"):
        discovery.matching(spec)
    with Running(spec, [Place(topic_name, 0, f"east.{topic_name}", "identical")]) as copying:
        status = copying.wait(lambda status: code(at(status, topic_name)) == "AB232")
        reason = str(at(status, topic_name).reason)
        assert f"{source.where} does not let user mirror in" in reason
        assert WRONG not in reason
        monkeypatch.setenv("CHANGED_PASSWORD", USERS["mirror"])
        copying.wait(lambda status: at(status, topic_name).position == 10 and code(at(status, topic_name)) is None)


DECLARATION = """\
version: 1
name: {name}
clusters:
  east:
    bootstrap: "{east}"
    security:
      {{protocol: SASL_SSL, mechanism: SCRAM-SHA-512, username: mirror, password: "env:{password}", ca: "file:{ca}"}}
  west:
    bootstrap: "{west}"
    security: {{protocol: SSL, ca: "file:{west_ca}", certificate: "file:{certificate}", key: "file:{key}"}}
flows:
  - {{from: east, to: west, topics: {{include: ["{topic}"]}}}}
"""


def test_commands_reach_secured_clusters_and_name_what_is_wrong(
    east: EmbeddedCluster, west: EmbeddedCluster, topic_name: str, tmp_path: Path
) -> None:
    create(east, topic_name)
    allow(east, "mirror", [topic_name], READ, DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    certificate, key = west.certificate("commander")
    (tmp_path / "other.pem").write_text(Authority("other").pem)

    def declaration(password: str = "MIRROR_PASSWORD", ca: Path = east.ca) -> Path:
        path = tmp_path / f"{password}-{ca.stem}.yaml"
        name, places = topic_name[-40:].strip("-"), {"east": east.bootstrap, "west": west.bootstrap, "west_ca": west.ca}
        own = {"certificate": certificate, "key": key}
        path.write_text(DECLARATION.format(name=name, password=password, ca=ca, topic=topic_name, **places, **own))
        return path

    assert anabranch("validate", "--resolve", declaration()).code == 0
    applied = anabranch("apply", "--yes", declaration())
    assert applied.code == 0, applied.stderr
    assert f"east.{topic_name}" in Connection(by_certificate(west)).metadata.topics
    for arguments, expected in (
        (("plan", declaration(ca=tmp_path / "other.pem")), "AB318"),
        (("plan", declaration(password="WRONG_PASSWORD")), "AB312"),
        (("replicate", declaration(password="WRONG_PASSWORD")), "AB312"),
    ):
        ended = anabranch(*arguments)
        assert ended.code == 1
        assert expected in ended.stderr
        assert "user mirror" in ended.stderr
        assert WRONG not in ended.stdout + ended.stderr


# --- what changes ----------------------------------------------------------------------------------------------------


def test_a_certificate_may_be_replaced(west: EmbeddedCluster) -> None:
    cluster = by_certificate(west, "changing")
    loop = Loop()
    wire = Wire(loop, cluster, "tests", 2.0)
    answers: list[int] = []

    async def talk() -> None:
        await wire.connect()
        answers.append(len(await wire.topics(["orders"])))
        west.certificate("changing", timedelta(days=-1))
        wire.drop("the certificate is another")
        with pytest.raises(NotLetIn, match="alert"):
            while True:
                await wire.topics(["orders"])
        west.certificate("changing")
        deadline = time.monotonic() + SECONDS
        while len(answers) < 2:
            assert time.monotonic() < deadline
            try:
                answers.append(len(await wire.topics(["orders"])))
            except NotLetIn:
                await loop.sleep(0.05)

    try:
        loop.run(talk)
    finally:
        wire.close()
        loop.close()


def told(number: int) -> dict[str, object]:
    """Return a value as the control topic holds them."""
    return {"command": "stop", "time": float(number)}


def test_a_password_may_be_changed(east: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    Journal(by_password(east, variable="ADMIN_PASSWORD", user="admin"), own("tests").control).ensure()
    allow(east, "mirror", [own("tests").control.name], READ, WRITE, DESCRIBE)
    cluster = by_password(east)
    journal = Journal(cluster, own("tests").control)
    journal.write("before", told(1))
    follower = journal.follow()
    assert follower.catch_up() == {"before": told(1)}
    try:
        east.set_password("mirror", NEW)
        # Brokers keep connections that stand; a new broker process has none.
        east.stop_broker()
        east.start_broker()
        with pytest.raises(EnvironmentFault, match="does not let user mirror in") as refused:
            journal.write("meanwhile", told(2))
        assert NEW not in str(refused.value)
        assert list(follower.poll(0.5)) == []
        monkeypatch.setenv("MIRROR_PASSWORD", NEW)
        deadline = time.monotonic() + 3 * SECONDS
        heard: dict[str, object] = {}
        written = False
        while "after" not in heard:
            assert time.monotonic() < deadline, "the new password is not taken up"
            try:
                written = written or journal.write("after", told(3)) > 0
            except EnvironmentFault:
                continue
            heard.update(follower.poll(0.2))
        assert heard["after"] == told(3)
    finally:
        follower.close()
        east.set_password("mirror", USERS["mirror"])


def test_a_journal_is_made_over_tls(west: EmbeddedCluster) -> None:
    journal = Journal(by_certificate(west), own("tests").control)
    journal.ensure()
    journal.write("key", told(1))
    assert journal.read()["key"] == told(1)
