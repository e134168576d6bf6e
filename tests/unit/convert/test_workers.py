"""Connectors that workers share: each that copies is a flow of its name, and keeps it when others come."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.convert.connect import Connector
from reconciler.convert.conversion import cluster_of_worker, convert, convert_worker, name_of
from reconciler.convert.plugins import PLUGINS, plugin_of
from reconciler.convert.settings import Setting, Settings
from reconciler.convert.values import holds_secret
from reconciler.model.base.errors import DeclaredInputError
from reconciler.model.declared.topology import Topology
from tests.support.converting import HEARTBEATS, connector, declared

WORKER = Settings([Setting("bootstrap.servers", "w1.example:9092,w2.example:9092", "worker.properties:1")])


def one(name: str, config: dict[str, str], *, is_stopped: bool = False) -> Connector:
    settings = Settings(Setting(key, value, f"connector {name}") for key, value in config.items())
    return Connector(name, settings, f"connector {name}", is_stopped)


def made(folder: Path, *connectors: Connector) -> Topology:
    return declared(folder, convert_worker(connectors, WORKER, "workers"))


def refused(*connectors: Connector) -> str:
    with pytest.raises(DeclaredInputError) as raised:
        convert_worker(connectors, WORKER, "workers")
    return "\n".join(map(str, raised.value.problems))


def test_each_connector_that_copies_is_a_flow_of_its_name(tmp_path: Path) -> None:
    topology = made(
        tmp_path,
        one("orders", connector("Source", topics="orders")),
        one("payments", connector("Source", topics="payments"), is_stopped=True),
        one("groups", connector("Checkpoint", groups="billing")),
        one("beats", connector("Heartbeat")),
    )
    flows = {flow.name: flow for flow in topology.flows}
    assert flows.keys() == {"orders", "payments"}
    assert [flow.topics.include for flow in flows.values()] == [("orders",), ("payments",)]
    assert [flow.enabled for flow in flows.values()] == [True, False]
    assert [flow.groups.include for flow in flows.values()] == [("billing",), ("billing",)]
    # The way has heartbeats once.
    assert [bool(flow.heartbeats) for flow in flows.values()] == [True, False]


def test_what_is_stopped_beside_a_flow_does_nothing_for_it(tmp_path: Path) -> None:
    topology = made(
        tmp_path,
        one("orders", connector("Source", topics="orders")),
        one("groups", connector("Checkpoint", groups="billing"), is_stopped=True),
    )
    assert topology.flows[0].groups.include == ()


def test_the_target_is_the_workers_cluster_where_a_connector_names_none(tmp_path: Path) -> None:
    config = connector("Source", topics="orders")
    del config["target.cluster.bootstrap.servers"]
    topology = made(tmp_path, one("orders", config))
    assert topology.clusters["b"].bootstrap == ("w1.example:9092", "w2.example:9092")
    assert cluster_of_worker(WORKER).bootstrap == ("w1.example:9092", "w2.example:9092")
    with pytest.raises(DeclaredInputError, match=r"bootstrap\.servers"):
        cluster_of_worker(Settings([]))


def test_a_source_of_mirus_is_one_of_them(tmp_path: Path) -> None:
    config = {
        "connector.class": "com.salesforce.mirus.MirusSourceConnector",
        "topics.whitelist": "clicks",
        "consumer.bootstrap.servers": "m.example:9092",
        "destination.topic.name.suffix": ".mirror",
    }
    topology = made(tmp_path, one("clicks", config), one("orders", connector("Source", topics="orders")))
    assert {(flow.name, flow.source, flow.target) for flow in topology.flows} == {
        ("clicks", "clicks-source", "destination"),
        ("orders", "a", "b"),
    }


def test_two_that_copy_one_topic_to_one_place_are_refused() -> None:
    said = refused(one("x", connector("Source", topics="orders")), one("y", connector("Source", topics="orders")))
    assert "orders" in said


def test_one_alias_is_one_cluster() -> None:
    other = connector("Source", topics="payments") | {"source.cluster.bootstrap.servers": "other.example:9092"}
    said = refused(one("x", connector("Source", topics="orders")), one("y", other))
    assert "AB141" in said
    assert "connector x" in said


def test_several_of_files_between_the_same_clusters_are_flows_of_their_names(tmp_path: Path) -> None:
    """Each of them has topics of its own: formerly those of the first one alone were kept."""
    paths = []
    for name in ("orders", "payments"):
        path = tmp_path / f"{name}.properties"
        config = connector("Source", topics=name, name=name)
        path.write_text("".join(f"{key}={value}\n" for key, value in config.items()))
        paths.append(path)
    topology = declared(tmp_path, convert(paths))
    assert {flow.name: flow.topics.include for flow in topology.flows} == {
        "orders": ("orders", HEARTBEATS),
        "payments": ("payments",),
    }
    paths[1].write_text(paths[1].read_text().replace("name=payments\n", ""))
    with pytest.raises(DeclaredInputError, match="no name"):
        convert(paths)


@pytest.mark.parametrize(
    ("key", "value", "holds"),
    [
        ("ssl.truststore.password", "swordfish", True),
        ("ssl.truststore.password", "${file:/run/secrets/kafka:truststore}", False),
        ("ssl.truststore.password", "", False),
        ("ssl.keystore.key", "-----BEGIN PRIVATE KEY-----", True),
        ("source.cluster.sasl.jaas.config", 'a.PlainLoginModule required username="u" password="swordfish";', True),
        ("sasl.jaas.config", 'a.PlainLoginModule required username="u" password="${env:PASSWORD}";', False),
        ("sasl.jaas.config", "${file:/run/secrets/kafka:jaas}", False),
        ("sasl.jaas.config", "swordfish", True),
        ("sasl.jaas.config", "com.sun.security.auth.module.Krb5LoginModule required;", False),
        ("sasl.jaas.config", 'a.OAuthBearerLoginModule required clientId="c" clientSecret="swordfish";', True),
        ("sasl.oauthbearer.client.credentials.client.secret", "swordfish", True),
        ("sasl.oauthbearer.token.endpoint.url", "https://idp.example/token", False),
        ("key.converter", "ByteArrayConverter", False),
        ("topics", "passwords", False),
    ],
)
def test_which_settings_hold_a_secret(key: str, value: str, holds: bool) -> None:
    assert holds_secret(Setting(key, value, "x")) is holds
    config = connector("Source", topics="orders") | {key: value}
    if holds:
        said = refused(one("x", config))
        assert "AB143" in said
        assert "swordfish" not in said


def test_classes_have_short_names_as_well() -> None:
    for plugin in PLUGINS:
        for name in (plugin.full_name, plugin.kind, plugin.kind.removesuffix("Connector")):
            assert plugin_of(name) is plugin
    assert plugin_of("FileStreamSource") is None


@pytest.mark.parametrize(
    ("text", "name"),
    [("connect-cluster", "connect-cluster"), ("My Group_1", "my-group-1"), ("---", "mirror"), ("x" * 80, "x" * 63)],
)
def test_a_group_names_a_topology(text: str, name: str) -> None:
    assert name_of(text) == name
