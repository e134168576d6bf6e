"""What a node is told: settings for small clusters, the security of users, and odd input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.embedded.certificates import Authority
from reconciler.embedded.settings import (
    ClusterOptions,
    NodePorts,
    format_storage,
    formatted_cluster_id,
    kafka_uuid,
    server_properties,
    tls_settings,
)


def _settings(nodes: int, options: ClusterOptions, node: int = 1) -> dict[str, str]:
    ports = {number: NodePorts(20000 + number, 21000 + number, 22000 + number) for number in range(1, nodes + 1)}
    lines = server_properties(node, ports, Path("/data"), options).splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize(("nodes", "replicas", "in_sync"), [(1, "1", "1"), (2, "2", "2"), (3, "3", "2"), (5, "3", "2")])
def test_internal_topics_fit_the_number_of_nodes(nodes: int, replicas: str, in_sync: str) -> None:
    settings = _settings(nodes, ClusterOptions())
    assert settings["offsets.topic.replication.factor"] == replicas
    assert settings["transaction.state.log.replication.factor"] == replicas
    assert settings["transaction.state.log.min.isr"] == in_sync


def test_every_node_knows_all_controllers_and_listens_on_its_own_ports() -> None:
    settings = _settings(3, ClusterOptions(), node=2)
    assert settings["node.id"] == "2"
    assert settings["controller.quorum.voters"] == "1@127.0.0.1:22001,2@127.0.0.1:22002,3@127.0.0.1:22003"
    assert settings["listeners"] == "CLIENT://127.0.0.1:20002,INTERNAL://127.0.0.1:21002,CONTROLLER://127.0.0.1:22002"


def test_overrides_win() -> None:
    assert _settings(1, ClusterOptions(overrides={"log.retention.ms": "5"}))["log.retention.ms"] == "5"


def test_first_user_and_brokers_are_super_users() -> None:
    settings = _settings(1, ClusterOptions(users={"root": "r", "alice": "a"}))
    assert settings["super.users"] == "User:root;User:ANONYMOUS"
    assert settings["listener.security.protocol.map"].startswith("CLIENT:SASL_PLAINTEXT,INTERNAL:PLAINTEXT")


def test_each_mechanism_has_its_login_module() -> None:
    mechanisms = ("SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN", "OAUTHBEARER")
    settings = _settings(1, ClusterOptions(users={"root": "r", "alice": "a"}, mechanisms=mechanisms))
    assert settings["listener.name.client.sasl.enabled.mechanisms"] == ",".join(mechanisms)
    for mechanism, module in zip(mechanisms, ("Scram", "Scram", "Plain", "OAuthBearer"), strict=True):
        assert f"{module}LoginModule required" in settings[f"listener.name.client.{mechanism.lower()}.sasl.jaas.config"]


@pytest.mark.parametrize(
    ("options", "protocol"),
    [
        (ClusterOptions(), "PLAINTEXT"),
        (ClusterOptions(tls=True), "SSL"),
        (ClusterOptions(users={"a": "b"}), "SASL_PLAINTEXT"),
        (ClusterOptions(users={"a": "b"}, tls=True, mutual=True), "SASL_SSL"),
    ],
)
def test_options_say_how_clients_connect(options: ClusterOptions, protocol: str) -> None:
    assert options.protocol == protocol
    protocols = _settings(1, options)["listener.security.protocol.map"]
    assert protocols == f"CLIENT:{protocol},INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT"


@pytest.mark.parametrize("mutual", [True, False])
def test_a_listener_with_tls_has_its_certificate(mutual: bool) -> None:
    own = Authority("test").issue("broker", ("127.0.0.1",))
    settings = tls_settings("CA", own, mutual)
    assert settings["listener.name.client.ssl.keystore.key"] == own.key
    assert settings["listener.name.client.ssl.client.auth"] == ("required" if mutual else "none")
    assert own.key not in repr(own)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mechanisms": ["GSSAPI"]}, "mechanisms: expected some of PLAIN"),
        ({"users": {"a": "b"}, "mechanisms": ["OAUTHBEARER"]}, "mechanisms: expected one with a password"),
        ({"mutual": True}, "mutual: goes with tls alone"),
        ({"nodes": 3, "racks": ["a", "b"]}, "racks: expected one for each of 3 nodes, found 2"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ClusterOptions(**options)


def test_values_are_escaped_for_java() -> None:
    settings = _settings(1, ClusterOptions(overrides={"odd": 'a\\b\nc é 𝄞 "'}))
    assert settings["odd"] == 'a\\\\b\\nc \\u00e9 \\ud834\\udd1e "'


@pytest.mark.parametrize("name", ["", "a b", 'a"b', "a=b"])
def test_user_names_that_jaas_cannot_hold_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="users: expected a name"):
        ClusterOptions(users={name: "secret"})


def test_cluster_without_nodes_is_refused() -> None:
    with pytest.raises(ValueError, match="nodes: expected at least 1, found 0"):
        ClusterOptions(nodes=0)


def test_formatted_folder_keeps_its_cluster(tmp_path: Path) -> None:
    assert formatted_cluster_id(tmp_path) is None
    first, second = kafka_uuid(), kafka_uuid()
    form, data = tmp_path / "form", tmp_path / "data"
    (form / "__cluster_metadata-0").mkdir(parents=True)
    (form / "__cluster_metadata-0" / "0.checkpoint").write_bytes(b"levels")
    format_storage(data, 1, first, form)
    format_storage(data, 1, second, form)
    assert formatted_cluster_id(data) == first != second
    assert (data / "__cluster_metadata-0" / "0.checkpoint").read_bytes() == b"levels"


def test_ids_have_kafkas_form() -> None:
    ids = {kafka_uuid() for _ in range(500)}
    assert len(ids) == 500
    assert all(len(made) == 22 and not made.startswith("-") for made in ids)
