"""`doctor` on live clusters: what is open, what is closed, and what is not there."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from reconciler.cli.main import main
from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.embedded.ports import HOST
from tests.support.clusters.kafka import create
from tests.support.security.acls import allow, give, needed_by

USERS = {"admin": "admin-secret", "patient": "patient-secret"}
TOPOLOGY = """version: 1
name: clinic
clusters:
  east: {{bootstrap: ["{east}"]}}
  west:
    bootstrap: ["{west}"]
    security: {{protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: patient, password: "env:PATIENT_PASSWORD"}}
flows:
  - {{from: east, to: west, tasks: 2, topics: {{include: ["{topic}"]}}}}
"""


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("secured", ClusterOptions(users=USERS)) as cluster:
        yield cluster


def examined(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, tuple[str, str]]:
    """Return level and finding of each check."""
    assert main(["doctor", *arguments, "--format", "json"]) == code
    return {check["what"]: (check["level"], check["found"]) for check in json.loads(capsys.readouterr().out)}


def test_what_is_missing_fails_and_what_is_granted_is_well(
    source_cluster: EmbeddedCluster,
    secured: EmbeddedCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATIENT_PASSWORD", USERS["patient"])
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    create(source_cluster, topic_name)
    create(secured, f"east.{topic_name}")
    file = tmp_path / "doctor.yaml"
    file.write_text(TOPOLOGY.format(topic=topic_name, east=source_cluster.bootstrap, west=secured.bootstrap))

    found = examined(capsys, str(file), code=1)
    assert {
        what: level for what, (level, _) in found.items() if what.startswith(("java", "interp", "cluster east"))
    } == {
        "java": "ok",
        "interpreter": "ok",
        "cluster east: bootstrap": "ok",
        "cluster east: brokers": "ok",
        "cluster east: encryption": "ok",
        "cluster east: clock": "ok",
        "cluster east: permissions to replicate": "ok",
        "cluster east: permissions to apply": "ok",
    }
    assert "2 tasks of 1 flow;" in found["slots"][1]
    level, said = found["cluster west: permissions to replicate"]
    assert level == "failure"
    assert f"user patient lacks READ and WRITE on topic east.{topic_name}" in said
    assert "READ on group anabranch.clinic.east-west" in said
    level, said = found["cluster west: clock"]
    assert level == "warning"
    assert "DESCRIBE on the cluster" in said

    give(secured, "patient", needed_by(file, "west"))
    found = examined(capsys, str(file))
    assert found["cluster west: permissions to replicate"][0] == "ok"
    assert found["cluster west: permissions to apply"][0] == "ok"
    assert found["cluster west: capabilities"][0] == "ok"
    allow(secured, "patient", ResourceType.BROKER, "kafka-cluster", AclOperation.DESCRIBE)
    assert "± 0." in examined(capsys, str(file))["cluster west: clock"][1]

    assert main(["doctor", str(file)]) == 0
    text = capsys.readouterr().out
    assert "ok       cluster west: brokers" in text
    assert USERS["patient"] not in text


def test_a_cluster_that_is_not_there_fails_and_the_others_are_looked_at(
    source_cluster: EmbeddedCluster,
    topic_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PATIENT_PASSWORD", "unused")
    with socket.socket() as nobody:
        nobody.bind((HOST, 0))
        address = f"{HOST}:{nobody.getsockname()[1]}"
        file = tmp_path / "doctor.yaml"
        file.write_text(TOPOLOGY.format(topic=topic_name, east=source_cluster.bootstrap, west=address))
        found = examined(capsys, str(file), code=1)
    level, said = found["cluster west"]
    assert level == "failure"
    assert "does not answer" in said
    assert found["cluster east: brokers"][0] == "ok"


def test_without_files_the_machine_alone_is_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(examined(capsys)) == {"java", "interpreter"}
