"""What the replicator itself is allowed by `apply`: exactly what it needs, on both sides, as long as it does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from reconciler.declare import load
from reconciler.embedded import ClusterOptions, EmbeddedCluster, start_all, stop_all
from reconciler.model.names.own_names import state_names
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.driver import driver
from reconciler.state.confluent import bindings
from tests.support.clusters.kafka import ANSWER_SECONDS, ANY_ACL, admin, create, grant, grow
from tests.support.commands.command import Ended, anabranch
from tests.support.replicator.copying import Running, code, fill, identical
from tests.support.security.acls import as_user, needed_by, revoke

CHANGED, REFUSED = 3, 4
RECORDS = 40
USERS = {user: f"{user}-secret" for user in ("admin", "mirror")}
MIRROR = "User:mirror"
DECLARATION = """\
version: 1
name: {name}
clusters:
  north:
    bootstrap: ["{north}"]
    replicator: {{principal: "User:mirror", reconcile: false}}
    security: {login}
  south:
    bootstrap: ["{south}"]
    replicator: {{principal: "User:mirror", reconcile: false}}
    security: {login}
flows:
  - {{from: north, to: south, topics: {{include: ["{topic}"]}}, offsets: identical, fill: transactions}}
"""
LOGIN = (
    "{protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: env:ANABRANCH_TEST_USER, "
    "password: env:ANABRANCH_TEST_PASSWORD}"
)


@pytest.fixture(scope="module")
def secured() -> Iterator[tuple[EmbeddedCluster, EmbeddedCluster]]:
    clusters = (
        EmbeddedCluster("own-north", ClusterOptions(users=USERS)),
        EmbeddedCluster("own-south", ClusterOptions(users=USERS)),
    )
    start_all(clusters)
    yield clusters
    stop_all(clusters)


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    login(monkeypatch, "admin")
    monkeypatch.setenv("ADMIN_PASSWORD", USERS["admin"])


def login(monkeypatch: pytest.MonkeyPatch, user: str) -> None:
    monkeypatch.setenv("ANABRANCH_TEST_USER", user)
    monkeypatch.setenv("ANABRANCH_TEST_PASSWORD", USERS[user])


def named(topic: str) -> str:
    """The topology's name, which has at most 63 letters."""
    return f"own-{topic[-8:]}"


def declared(folder: Path, secured: tuple[EmbeddedCluster, EmbeddedCluster], topic: str) -> Path:
    north, south = (one.bootstrap for one in secured)
    path = folder / "own.yaml"
    path.write_text(DECLARATION.format(name=named(topic), topic=topic, north=north, south=south, login=LOGIN))
    return path


def allowed(cluster: EmbeddedCluster) -> set[tuple[str, str, bool, str]]:
    """What the replicator is allowed on a cluster: kind, name, whether that is a prefix, operation."""
    client = admin(cluster)
    found = client.describe_acls(ANY_ACL, request_timeout=ANSWER_SECONDS).result(ANSWER_SECONDS)
    known = [one for one in map(bindings.from_kafka, found) if one is not None and one.principal == MIRROR]
    return {(one.kind, one.pattern.name, one.pattern.prefixed, one.operation) for one in known}


def needed(path: Path, alias: str) -> set[tuple[str, str, bool, str]]:
    return {
        (acl.kind, acl.pattern.name, acl.pattern.prefixed, acl.operation)
        for acl in needed_by(path, alias)
        if acl.purpose == "replicate"
    }


def applied(path: Path, *options: object) -> Ended:
    """Apply, and make sure that nothing is left to do."""
    ended = anabranch("apply", path, "--yes", "--format", "json", *options)
    assert ended.code == 0, ended.stderr
    plan = anabranch("plan", path, "--detailed-exitcode")
    assert plan.code == 0, plan.stdout
    return ended


def look_in(cluster: EmbeddedCluster, topic: str, *operations: AclOperation) -> None:
    """Allow the replicator something with what is on record as ours."""
    rest = [(ResourcePatternType.LITERAL, MIRROR, "*", one, AclPermissionType.ALLOW) for one in operations]
    grant(cluster, [AclBinding(ResourceType.TOPIC, state_names(named(topic)).owned, *one) for one in rest])


def drifted(path: Path) -> list[tuple[str, str, str, str | None, str | None]]:
    value = json.loads(anabranch("drift", path, "--format", "json").stdout)
    return [(one["kind"], one["topic"], one["field"], one["desired"], one["found"]) for one in value["drift"]]


def test_the_replicator_copies_with_what_apply_allows_it_and_with_nothing_else(
    secured: tuple[EmbeddedCluster, EmbeddedCluster], topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    north, south = secured
    path = declared(tmp_path, secured, topic_name)
    create(north, topic_name, 1)
    fill(north, topic_name, RECORDS)
    ended = anabranch("plan", path)
    shown = ended.stdout
    assert ended.code == 0, ended.stderr
    assert f"{MIRROR}   READ on topic {topic_name}   the replicator needs it for flow north-south" in shown
    assert f"{MIRROR}   WRITE on transactional-id anabranch.{named(topic_name)}.north-south.* (prefixed)" in shown
    applied(path)
    assert allowed(north) == needed(path, "north") == {("topic", topic_name, False, "READ")}
    assert allowed(south) == needed(path, "south")

    # The one who copies is mirror; admin looks.
    login(monkeypatch, "mirror")
    topology = load((path,))
    spec = FlowSpec.compile(topology, topology.flows[0], driver.new_run())
    with Running(spec, overseer=as_user("south", south, "admin")) as copying:
        status = copying.wait()
        assert [code(one) for one in status.partitions] == [None], status
    # It makes nothing: for that somebody must say `reconcile: true`.
    grow(north, topic_name, 2)
    refused = anabranch("apply", path, "--yes")
    assert refused.code == 1, refused.stdout
    assert "user mirror is not allowed" in refused.stderr
    login(monkeypatch, "admin")
    applied(path)
    seen = replace(spec, source=as_user("north", north, "admin"), target=as_user("south", south, "admin"))
    assert identical(seen, topic_name) == RECORDS


@pytest.mark.long
def test_what_it_is_allowed_is_mended_and_taken_back(
    secured: tuple[EmbeddedCluster, EmbeddedCluster], topic_name: str, tmp_path: Path
) -> None:
    north, south = secured
    path = declared(tmp_path, secured, topic_name)
    create(north, topic_name, 1)
    theirs = AclBinding(
        ResourceType.TOPIC,
        f"theirs-{topic_name}",
        ResourcePatternType.LITERAL,
        MIRROR,
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    grant(north, [theirs])
    before = allowed(north), allowed(south)
    applied(path)
    assert drifted(path) == []
    lost = AclBinding(
        ResourceType.GROUP,
        f"anabranch.{named(topic_name)}.north-south",
        ResourcePatternType.LITERAL,
        MIRROR,
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    revoke(south, lost)
    words = f"{MIRROR} READ on group anabranch.{named(topic_name)}.north-south"
    assert drifted(path) == [("missing", lost.name, "acl", words, None)]
    applied(path)
    assert drifted(path) == []

    # All at once: what making topics and growing takes, and what is optional.
    text = path.read_text()
    path.write_text(text.replace("reconcile: false", "optional: true"))
    applied(path)
    more = allowed(south) - before[1]
    assert {("topic", f"north.{topic_name}", False, one) for one in ("CREATE", "ALTER", "DELETE")} <= more
    path.write_text(text)
    applied(path)
    assert allowed(south) - before[1] == needed(path, "south") - before[1]

    # Who is somebody else now is allowed it, and who was before no longer.
    path.write_text(text.replace("User:mirror", "User:other"))
    applied(path)
    assert (allowed(north), allowed(south)) == before
    path.write_text(text)
    applied(path)
    ended = anabranch("destroy", path, "--yes", "--allow-delete", "topic=1")
    assert ended.code == 0, ended.stderr
    assert (allowed(north), allowed(south)) == before
    assert ("topic", f"theirs-{topic_name}", False, "READ") in allowed(north)


def test_who_may_not_grant_is_told(
    secured: tuple[EmbeddedCluster, EmbeddedCluster], topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    north, south = secured
    path = declared(tmp_path, secured, topic_name)
    text = path.read_text()
    # Mirror may do all that planning takes, and look into what is ours at the source, too.
    path.write_text(text.replace("reconcile: false", "reconcile: true"))
    create(north, topic_name, 1)
    applied(path)
    look_in(north, topic_name, AclOperation.READ, AclOperation.DESCRIBE_CONFIGS)
    path.write_text(text.replace("User:mirror", "User:other"))
    login(monkeypatch, "mirror")
    # What is ours cannot be locked by who may write nowhere on a cluster: brokers do not even take such a producer.
    ended = anabranch("apply", path, "--yes")
    assert ended.code == 1
    assert f"user mirror is not allowed WRITE on topic {state_names(named(topic_name)).owned}" in ended.stderr
    # The client's own line, in its own words, was before it.
    assert "rdkafka" not in ended.stderr
    login(monkeypatch, "admin")
    look_in(north, topic_name, AclOperation.WRITE)
    before = allowed(north), allowed(south)
    login(monkeypatch, "mirror")
    ended = anabranch("apply", path, "--yes")
    assert ended.code == 0, ended.stderr
    login(monkeypatch, "admin")
    assert (allowed(north), allowed(south)) == before
    for alias in ("north", "south"):
        why = f"its replicator is granted nothing: user mirror is not allowed DESCRIBE on cluster {alias}"
        assert why in " ".join(ended.stdout.split())


def test_what_two_topologies_need_stays_until_neither_does(
    secured: tuple[EmbeddedCluster, EmbeddedCluster], topic_name: str, tmp_path: Path
) -> None:
    north, south = secured
    paths = []
    for kind in ("orders", "people"):
        folder = tmp_path / kind
        folder.mkdir()
        create(north, f"{topic_name}-{kind}", 1)
        text = declared(folder, secured, f"{topic_name}-{kind}").read_text()
        path = folder / "own.yaml"
        path.write_text(text.replace(f"name: {named(f'{topic_name}-{kind}')}", f"name: {kind}-{topic_name[-8:]}"))
        paths.append(path)
    before = allowed(north), allowed(south)
    first, second = paths
    applied(first)
    applied(second)
    ended = anabranch("destroy", first, "--yes", "--allow-delete", "topic=1")
    assert ended.code == 0, ended.stderr
    assert needed(second, "south") <= allowed(south)
    assert (drifted(second), anabranch("plan", second, "--detailed-exitcode").code) == ([], 0)
    ended = anabranch("destroy", second, "--yes", "--allow-delete", "topic=1")
    assert ended.code == 0, ended.stderr
    assert (allowed(north), allowed(south)) == before
