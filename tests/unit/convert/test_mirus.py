"""Sources of Mirus converted: topics by name and by expression, suffixes, routers, loops back, the worker's file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.convert.conversion import convert
from reconciler.model.base.errors import DeclaredInputError
from tests.support.converting import declared, lost

QUICK_START = {
    "name": "mirus-quickstart-source",
    "connector.class": "com.salesforce.mirus.MirusSourceConnector",
    "tasks.max": "5",
    "topics.whitelist": "test",
    "destination.topic.name.suffix": ".mirror",
    "destination.consumer.bootstrap.servers": "localhost:9092",
    "consumer.bootstrap.servers": "localhost:9092",
    "consumer.client.id": "mirus-quickstart",
    "consumer.key.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
    "consumer.value.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
}
ROUTER = {
    "transforms": "route",
    "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.route.regex": "^([^.]*)\\.(.*)",
    "transforms.route.replacement": "$2-from-$1",
}
WORKER = "bootstrap.servers=far.example:9092\nproducer.compression.type=lz4\nconfig.storage.topic=x\n"


def source(**more: Any) -> dict[str, Any]:
    """A source between two clusters; keyword arguments have underscores for dots."""
    own = {key.replace("_", "."): value for key, value in more.items()}
    made = {**QUICK_START, "destination.consumer.bootstrap.servers": "far.example:9092", **own}
    return {key: value for key, value in made.items() if value is not None}


def written(folder: Path, *configs: dict[str, Any]) -> list[Path]:
    paths = [folder / f"source{number}.json" for number in range(len(configs))]
    for path, config in zip(paths, configs, strict=True):
        path.write_text(json.dumps(config))
    return paths


def test_the_quick_start_is_a_loop_back(tmp_path: Path) -> None:
    made = convert(written(tmp_path, QUICK_START))
    topology = declared(tmp_path, made)
    (flow,) = topology.flows
    assert (flow.source, flow.target, flow.tasks, flow.topics.include) == ("source", "source", 5, ("test",))
    assert flow.policy.remote_topic("source", "test") == "test.mirror"
    assert set(lost(made)) == {"consumer.key.deserializer", "consumer.value.deserializer"}


def test_names_are_names_and_an_expression_may_hold_a_comma(tmp_path: Path) -> None:
    config = source(topics_whitelist="a.b, c", topics_regex="x{1,2}")
    (flow,) = declared(tmp_path, convert(written(tmp_path, config))).flows
    assert flow.topics.include == ("a\\.b", "c", "x{1,2}")


def test_a_router_renames(tmp_path: Path) -> None:
    config = source(**{"destination.topic.name.suffix": None}, **ROUTER)
    (flow,) = declared(tmp_path, convert(written(tmp_path, config))).flows
    names = [flow.policy.remote_topic("source", name) for name in ("eu.orders", "orders")]
    assert names == ["orders-from-eu", "orders"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"destination.topic.name.prefix": "far."}, "far.test.mirror"),
        ({"destination.topic.name.prefix": "far.", "destination.topic.name.suffix": None}, "far.test"),
        ({"destination.topic.name.suffix": "2"}, "test2"),
    ],
)
def test_what_stands_before_and_behind_a_name(change: dict[str, Any], expected: str, tmp_path: Path) -> None:
    (flow,) = declared(tmp_path, convert(written(tmp_path, source(**change)))).flows
    assert flow.policy.remote_topic("source", "test") == expected


@pytest.mark.parametrize(
    ("regex", "replacement", "expected"),
    [
        ("(.*)", "$12", "orders2"),
        ("(.*)", "$0-far", "orders-far"),
        ("(?<all>.*)", "${all}-far", "orders-far"),
        ("(o)(.*)", "$2$1", "rderso"),
        ("(.*)", "far\\.$1", "far.orders"),
        ("(.*)", "$1\\2", "orders2"),
        ("(.*)", "$1\\-2", "orders-2"),
    ],
)
def test_a_replacement_is_read_as_java_does(regex: str, replacement: str, expected: str, tmp_path: Path) -> None:
    more = {"transforms.route.regex": regex, "transforms.route.replacement": replacement}
    config = source(**ROUTER | more | {"destination.topic.name.suffix": None, "topics.whitelist": "orders"})
    (flow,) = declared(tmp_path, convert(written(tmp_path, config))).flows
    assert flow.policy.remote_topic("source", "orders") == expected


def test_a_list_of_expressions_the_older_servers_and_how_often_it_looks(tmp_path: Path) -> None:
    changed = {"destination.consumer.bootstrap.servers": None, "destination.bootstrap.servers": "old.example:9092"}
    more = {"topics.whitelist": None, "topics.regex.list": "a.*, b[0-9]", "monitor.poll.wait.ms": 90_000}
    topology = declared(tmp_path, made := convert(written(tmp_path, source(**changed | more))))
    (flow,) = topology.flows
    assert (flow.topics.include, flow.refresh_interval) == (("a.*", "b[0-9]"), 90.0)
    assert topology.clusters["destination"].bootstrap == ("old.example:9092",)
    assert set(lost(made)) == {"consumer.key.deserializer", "consumer.value.deserializer"}


def test_settings_of_its_own_are_known(tmp_path: Path) -> None:
    own = {"enable.partition.matching": True, "poll.timeout.ms": 1_000, "replay.policy": "FILTER"}
    made = convert(written(tmp_path, source(**own)))
    assert lost(made)["enable.partition.matching"] == "records always keep their partitions"
    assert not [why for why in lost(made).values() if "is known by this name" in why]


def test_without_suffix_and_router_names_are_kept(tmp_path: Path) -> None:
    (flow,) = declared(tmp_path, convert(written(tmp_path, source(**{"destination.topic.name.suffix": None})))).flows
    assert flow.policy.kind == "identity"


def test_several_sources_and_the_file_of_their_worker(tmp_path: Path) -> None:
    worker = tmp_path / "worker.properties"
    worker.write_text(WORKER)
    one = source(**{"destination.consumer.bootstrap.servers": None})
    other = {**one, "consumer.bootstrap.servers": "other.example:9092", "name": "other"}
    made = convert([*written(tmp_path, one, other), worker])
    topology = declared(tmp_path, made)
    assert [(flow.source, flow.target) for flow in topology.flows] == [
        ("source-1", "destination"),
        ("source-2", "destination"),
    ]
    assert topology.clusters["destination"].bootstrap == ("far.example:9092",)
    assert {flow.compression for flow in topology.flows} == {"lz4"}
    assert lost(made)["config.storage.topic"] == "no Connect is needed"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"destination.consumer.bootstrap.servers": None}, "names the destination"),
        ({"topics.whitelist": None}, "none of topics.whitelist, topics.regex and topics.regex.list"),
        ({"consumer.bootstrap.servers": None}, "cluster source has no bootstrap.servers"),
        (ROUTER, "(transforms): several things rename topics"),
        ({"transforms": "x", "destination.topic.name.suffix": None}, "the transformation x is no RegexRouter"),
        (
            {**ROUTER, "transforms.route.regex": None, "destination.topic.name.suffix": None},
            "the transformation route has no regex, or no replacement",
        ),
    ],
)
def test_what_cannot_be_converted_is_an_error(change: dict[str, Any], expected: str, tmp_path: Path) -> None:
    with pytest.raises(DeclaredInputError) as raised:
        convert(written(tmp_path, source(**change)))
    assert expected in str(raised.value)
