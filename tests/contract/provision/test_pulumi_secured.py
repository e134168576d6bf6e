"""Carrying plans out with Pulumi behind passwords, with the stand-in: where secrets are not, and ACLs of copies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from reconciler.declare import load
from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.acls.binding import OwnedBinding
from reconciler.model.planning.steps import RevokeAcl
from reconciler.provision.direct import DirectProvisioner
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.ownership import Ownership
from stacks.names import ACL_TYPE
from tests.support.clusters.kafka import ANSWER_SECONDS, ANY_ACL, admin, create, grant
from tests.support.provision import fake_pulumi
from tests.support.provision.provisioning import TARGET, Way, held, plan_of, write
from tests.support.security.acls import revoke

PASSWORD = "a-word-that-nobody-may-see"


SECURED = """\
version: 1
name: {name}
clusters:
  north: {{bootstrap: ["{source}"], datacenter: dc1, security: {login}}}
  south: {{bootstrap: ["{target}"], datacenter: dc2, security: {login}}}
defaults:
  topics: {{include: ["{topic}.*"]}}
flows:
  - {{from: north, to: south}}
""".replace(
    "{login}", '{{protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: admin, password: "env:KAFKA_ADMIN_PASSWORD"}}'
)


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("secured", ClusterOptions(users={"admin": PASSWORD})) as cluster:
        yield cluster


@pytest.fixture
def behind_passwords(
    secured: EmbeddedCluster, tmp_path: Path, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A topology whose clusters want a password, which is in a variable that looks like the provider's own."""
    monkeypatch.setenv("KAFKA_ADMIN_PASSWORD", PASSWORD)
    return write(tmp_path, secured, secured, topic_name, SECURED)


def test_the_password_is_nowhere_but_in_its_variable(
    way: Way,
    behind_passwords: Path,
    secured: EmbeddedCluster,
    topic_name: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create(secured, f"{topic_name}-a")
    create(secured, f"{topic_name}-b")
    monkeypatch.setenv("FAKE_PULUMI_REFUSE", json.dumps({"-b": f"no login with {PASSWORD}"}))
    (failure,) = way.apply(behind_passwords).failed
    assert failure.problem.message == "no login with [secret]"

    monkeypatch.delenv("FAKE_PULUMI_REFUSE")
    assert way.apply(behind_passwords).is_complete
    asked = [json.dumps([call["argv"], call["stdin"]]) for call in fake_pulumi.calls(way.home)]
    assert not [one for one in asked if PASSWORD in one]
    written = [path for root in (way.home, way.project) for path in root.rglob("*") if path.is_file()]
    assert {path.name for path in written} >= {"Pulumi.yaml", "Pulumi.dc2.yaml", "dc2.json"}
    # What Python has compiled is among them.
    told = [path for path in written if path.name != fake_pulumi.CALLS and PASSWORD.encode() in path.read_bytes()]
    assert told == []
    assert PASSWORD not in "".join(capfd.readouterr())


@pytest.mark.long
def test_variables_of_the_provider_are_kept_from_it(
    way: Way, behind_passwords: Path, secured: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(secured, topic_name)
    for name in ("KAFKA_CA_CERT", "KAFKA_ENABLE_TLS", "KAFKA_SASL_PASSWORD"):
        monkeypatch.setenv(name, "of-another-cluster")
    assert way.apply(behind_passwords).is_complete
    # The first asks for the version alone, and starts no provider.
    seen = {name for call in fake_pulumi.calls(way.home)[1:] for name in call["names"] if name.startswith("KAFKA_")}
    assert seen == {"KAFKA_ADMIN_PASSWORD"}


def may(topic: str, host: str = "*") -> AclBinding:
    literal = ResourcePatternType.LITERAL
    return AclBinding(
        ResourceType.TOPIC, topic, literal, "User:alice", host, AclOperation.READ, AclPermissionType.ALLOW
    )


def readers(broker: EmbeddedCluster, topic: str) -> set[str]:
    client = admin(broker)
    found = client.describe_acls(ANY_ACL, request_timeout=ANSWER_SECONDS).result(ANSWER_SECONDS)
    return {one.host for one in found if one.name == topic}


@pytest.mark.long
def test_an_acl_that_another_topology_granted_too_is_forgotten_and_stays(
    way: Way, behind_passwords: Path, secured: EmbeddedCluster, topic_name: str
) -> None:
    create(secured, topic_name)
    grant(secured, [may(topic_name)])
    remote, topology = f"north.{topic_name}", load((behind_passwords,))
    assert way.apply(behind_passwords).is_complete
    (name,) = held(way, ACL_TYPE)
    assert name == f"south/User:alice|*|Read|Allow|Topic|{remote}|Literal"
    target, another = topology.clusters[TARGET], f"a{topic_name[-8:]}"
    (ours,) = [one for one in Ownership(target, topology.name).read_all().acls if one.topology == topology.name]
    Journal(target, own(another).owned).ensure()
    Ownership(target, another).write_bindings([OwnedBinding(ours.binding, another, ours.flow)])
    revoke(secured, may(topic_name))

    plan = plan_of(topology)
    (step,) = plan.steps
    assert isinstance(step, RevokeAcl)
    assert step.is_kept
    assert way.apply(behind_passwords, plan).is_complete
    assert readers(secured, remote) == {"*"}
    assert held(way, ACL_TYPE) == []
    assert plan_of(topology).changes_nothing


@pytest.mark.long
def test_an_acl_that_direct_granted_is_revoked_though_the_stack_does_not_know_it(
    way: Way, behind_passwords: Path, secured: EmbeddedCluster, topic_name: str
) -> None:
    create(secured, topic_name)
    grant(secured, [may(topic_name)])
    topology = load((behind_passwords,))
    assert DirectProvisioner(topology).apply(plan_of(topology)).is_complete
    revoke(secured, may(topic_name))
    assert way.apply(behind_passwords).is_complete
    assert readers(secured, f"north.{topic_name}") == set()
    assert plan_of(topology).changes_nothing
