"""References to secrets, and the one table that turns `security:` into both clients' settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.model.cluster import Cluster
from reconciler.model.errors import EnvironmentFault
from reconciler.model.security import SecretRef, Security

PASSWORD = "correct horse; battery"


def secured(password: SecretRef | None) -> Cluster:
    return Cluster("west", ("b1:9092", "b2:9092"), security=Security("SASL_PLAINTEXT", "PLAIN", "alice", password))


@pytest.mark.parametrize("text", ["env:PASSWORD", "env:_x1", "file:/run/secrets/west"])
def test_a_reference_is_written_as_it_was_read(text: str) -> None:
    assert str(SecretRef.parse(text)) == text


@pytest.mark.parametrize(
    "text", ["", "hunter2", "env:1X", "env:A-B", "env:A B", "file:relative", "file:/a b", "ENV:A", "env:A\n"]
)
def test_anything_else_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="not a reference") as caught:
        SecretRef.parse(text)
    assert not text or text not in str(caught.value)


def test_a_variables_value_is_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEST_PASSWORD", PASSWORD)
    assert SecretRef.parse("env:WEST_PASSWORD").resolve("cluster west") == PASSWORD


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEST_PASSWORD", raising=False)
    with pytest.raises(EnvironmentFault) as caught:
        SecretRef.parse("env:WEST_PASSWORD").resolve("cluster west")
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("AB304", "cluster west")
    assert "WEST_PASSWORD is not set" in problem.message


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_a_files_text_is_the_secret_without_its_last_line_ending(tmp_path: Path, ending: str) -> None:
    file = tmp_path / "secret"
    file.write_text(f" {PASSWORD} {ending}", encoding="utf-8", newline="")
    assert SecretRef.parse(f"file:{file}").resolve("cluster west") == f" {PASSWORD} "


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        SecretRef.parse(f"file:{tmp_path}/missing").resolve("cluster west")
    (problem,) = caught.value.problems
    assert problem.code == "AB304"
    assert f"cannot read {tmp_path}/missing: No such file" in problem.message


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(b"\xff\xfe\x00secret")
    with pytest.raises(EnvironmentFault) as caught:
        SecretRef.parse(f"file:{file}").resolve("cluster west")
    (problem,) = caught.value.problems
    assert problem.code == "AB304"
    assert str(file) in problem.message


def test_both_clients_get_the_same_security(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEST_PASSWORD", PASSWORD)
    cluster = secured(SecretRef.parse("env:WEST_PASSWORD"))
    assert cluster.librdkafka() == {
        "bootstrap.servers": "b1:9092,b2:9092",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }
    assert cluster.kafka_python() == {
        "bootstrap_servers": ["b1:9092", "b2:9092"],
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
    }


def test_without_security_both_clients_speak_plaintext() -> None:
    cluster = Cluster("west", ("b1:9092",))
    assert cluster.librdkafka() == {"bootstrap.servers": "b1:9092", "security.protocol": "PLAINTEXT"}
    assert cluster.kafka_python() == {"bootstrap_servers": ["b1:9092"], "security_protocol": "PLAINTEXT"}


def test_a_secret_is_looked_up_only_when_a_connection_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEST_PASSWORD", raising=False)
    cluster = secured(SecretRef.parse("env:WEST_PASSWORD"))
    assert "WEST_PASSWORD" in repr(cluster)
    for settings in (cluster.librdkafka, cluster.kafka_python):
        with pytest.raises(EnvironmentFault):
            settings()
    monkeypatch.setenv("WEST_PASSWORD", PASSWORD)
    assert cluster.librdkafka()["sasl.password"] == PASSWORD
    assert PASSWORD not in repr(cluster)


def test_messages_name_a_cluster_by_alias_and_addresses() -> None:
    assert Cluster("west", ("b1:9092", "b2:9092")).where == "cluster west (b1:9092,b2:9092)"
