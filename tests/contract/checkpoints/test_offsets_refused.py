"""`offsets` for somebody who may not do everything: operation, resource, user and cluster are named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from reconciler.cli.main import main
from reconciler.embedded import ClusterOptions, EmbeddedCluster
from tests.support.clusters.consumers import Run, Said, leave_behind, rows
from tests.support.clusters.kafka import create
from tests.support.security.acls import allow

ERROR = 1
USERS = {"admin": "admin-secret", "guest": "guest-secret"}
GROUP, TOPIC = ResourceType.GROUP, ResourceType.TOPIC
DECLARATION = """\
version: 1
name: secured
clusters:
  us-east:
    bootstrap: ["{address}"]
    security: {{protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: guest, password: "env:GUEST_PASSWORD"}}
  eu-west: {{bootstrap: ["127.0.0.1:1"]}}
flows:
  - {{from: us-east, to: eu-west, topics: {{include: [orders]}}}}
"""


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("secured", ClusterOptions(users=USERS)) as cluster:
        yield cluster


@pytest.fixture
def run(
    secured: EmbeddedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    monkeypatch.setenv("GUEST_PASSWORD", USERS["guest"])
    file = tmp_path / "secured.yaml"
    file.write_text(DECLARATION.format(address=secured.bootstrap))

    def run(command: str, *arguments: object) -> Said:
        code = main(["offsets", command, str(file), "--cluster", "us-east", *map(str, arguments)])
        said = capsys.readouterr()
        return code, said.out, " ".join(said.err.split())

    return run


def test_each_thing_that_is_missing_is_named(run: Run, secured: EmbeddedCluster, topic_name: str) -> None:
    create(secured, topic_name)
    group = f"billing-{topic_name}"
    leave_behind(secured, group, {(topic_name, 0): 0}, metadata="before")
    write = ("write", "--group", group, "--topic", topic_name, "--to", 0, "--yes")

    def lacks(said: Said, operation: str, resource: str) -> bool:
        code, _, err = said
        told = f"cluster us-east: user guest is not allowed {operation} on {resource}"
        return (code, told in err, "[AB313]" in err) == (ERROR, True, True)

    assert lacks(run("read", "--group", group), "DESCRIBE", f"group {group}")
    assert run("read", "--group", "all")[:2] == (0, "no offsets\n")
    assert lacks(run(*write), "DESCRIBE", f"group {group}")

    allow(secured, "guest", GROUP, group, AclOperation.DESCRIBE)
    # What stands in a topic that one may not see is not told either.
    assert run("read", "--group", group)[:2] == (0, "no offsets\n")
    code, _, err = run(*write)
    assert (code, "[AB623]" in err) == (ERROR, True)
    assert f"cluster us-east has no topic {topic_name}, or user guest is not allowed DESCRIBE on it" in err

    allow(secured, "guest", TOPIC, topic_name, AclOperation.DESCRIBE)
    code, out, _ = run("read", "--group", group, "--format", "csv")
    assert (code, [(row["offset"], row["metadata"]) for row in rows(out)]) == (0, [("0", "before")])
    assert lacks(run(*write), "READ", f"group {group}")

    allow(secured, "guest", GROUP, group, AclOperation.READ)
    assert lacks(run(*write), "READ", f"topic {topic_name}")
    code, out, _ = run("read", "--group", group, "--format", "csv")
    assert [row["metadata"] for row in rows(out)] == ["before"]

    allow(secured, "guest", TOPIC, topic_name, AclOperation.READ)
    assert run(*write)[0] == 0
    _, out, _ = run("read", "--group", group, "--format", "csv")
    assert [row["metadata"] for row in rows(out)] == [""]
