"""Connectors converted: several files make one flow, whatever form they have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.convert.conversion import convert
from reconciler.model.base.errors import DeclaredInputError
from tests.support.converting import HEARTBEATS, connector, declared, emr, lost

WALK_THROUGH = """\
# connector.properties
name = local-mirror-source
connector.class = org.apache.kafka.connect.mirror.MirrorSourceConnector
tasks.max = 1
topics=.*
source.cluster.alias = upstream
source.cluster.bootstrap.servers = host1:9092
target.cluster.bootstrap.servers = host2:9092
# use ByteArrayConverter to ensure that in and out records are exactly the same
key.converter = org.apache.kafka.connect.converters.ByteArrayConverter
value.converter = org.apache.kafka.connect.converters.ByteArrayConverter
"""


def written(folder: Path, *configs: Any) -> list[Path]:
    paths = []
    for number, config in enumerate(configs):
        path = folder / f"connector-{number}.json"
        path.write_text(json.dumps(config))
        paths.append(path)
    return paths


def problem(paths: list[Path]) -> str:
    with pytest.raises(DeclaredInputError) as raised:
        convert(paths)
    return "\n".join(str(one) for one in raised.value.problems)


def test_three_connectors_are_one_flow(tmp_path: Path) -> None:
    made = convert(emr(tmp_path, "s1.example:9092", "core-1-1:9092;core-1-2:9092;core-1-3:9092"))
    topology = declared(tmp_path, made)
    (flow,) = topology.flows
    assert (flow.source, flow.target, flow.topics.include, flow.tasks) == (
        "emrsource",
        "emrdest",
        ("^foo.*", HEARTBEATS),
        4,
    )
    assert topology.clusters["emrdest"].bootstrap == ("core-1-1:9092", "core-1-2:9092", "core-1-3:9092")
    assert topology.clusters["emrdest"].state_replication_factor == 3
    assert (flow.groups.include, flow.groups.interval, flow.heartbeats) == ((".*",), 20.0, 20.0)
    assert set(lost(made)) == {
        "key.converter",
        "value.converter",
        "consumer.group.id",
        "producer.enable.idempotence",
        "sync.topic.acls.interval.seconds",
        "sync.topic.configs.interval.seconds",
        "refresh.groups.interval.seconds",
    }


def test_without_their_connectors_there_are_no_heartbeats_and_no_checkpoints(tmp_path: Path) -> None:
    (flow,) = declared(tmp_path, convert(written(tmp_path, connector("Source")))).flows
    assert (flow.groups.include, flow.heartbeats) == ((), 0)


def test_a_connector_of_the_standalone_worker(tmp_path: Path) -> None:
    path = tmp_path / "connector.properties"
    path.write_text(WALK_THROUGH)
    made = convert([path])
    (flow,) = declared(tmp_path, made).flows
    assert (flow.source, flow.target) == ("upstream", "target")
    assert set(lost(made)) == {"key.converter", "value.converter"}


@pytest.mark.parametrize("kind", ["Source", "Sink"])
def test_each_form_of_a_configuration(kind: str, tmp_path: Path) -> None:
    config = connector(kind, topics="x")
    for form in (config, {"name": "one", "config": config}, [{"name": "one", "config": config}]):
        (flow,) = declared(tmp_path, convert(written(tmp_path, form))).flows
        assert flow.topics.include == ("x", HEARTBEATS)


def test_old_names_and_values_that_are_no_texts(tmp_path: Path) -> None:
    config = connector("Source", topics_blacklist="y")
    config["source.cluster.brokers.list"] = config.pop("source.cluster.bootstrap.servers")
    config |= {"tasks.max": 3, "sync.topic.acls.enabled": False, "topics": None}
    (flow,) = declared(tmp_path, convert(written(tmp_path, config))).flows
    assert (flow.tasks, flow.acls, flow.topics.exclude) == (3, False, ("y",))


def test_two_flows_share_a_cluster(tmp_path: Path) -> None:
    other = connector("Source") | {"target.cluster.alias": "c", "target.cluster.bootstrap.servers": "c.example:9092"}
    topology = declared(tmp_path, convert(written(tmp_path, connector("Source"), other)))
    assert [flow.name for flow in topology.flows] == ["a-b", "a-c"]
    assert list(topology.clusters) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ([connector("Checkpoint")], "nothing copies from a to b: a MirrorSourceConnector is missing"),
        ([{"connector.class": "com.example.Other"}], "found Other"),
        ([{"topics": "x"}], "found none"),
        ([[1]], "expected the configuration of a connector"),
        ([connector("Source") | {"x": {"y": 1}}], "expected the configuration of a connector"),
        (
            [connector("Source", name="m"), connector("Source", name="m", topics="x")],
            "the connector m has another configuration at",
        ),
        (
            [connector("Source"), connector("Checkpoint") | {"source.cluster.bootstrap.servers": "x:1"}],
            "contradicts source.cluster.bootstrap.servers at",
        ),
    ],
)
def test_what_cannot_be_converted_is_an_error(configs: list[Any], expected: str, tmp_path: Path) -> None:
    assert expected in problem(written(tmp_path, *configs))


def test_files_that_do_not_belong_together(tmp_path: Path) -> None:
    dedicated = tmp_path / "mm2.properties"
    dedicated.write_text("clusters = a, b\n")
    assert "convert it alone" in problem([*written(tmp_path, connector("Source")), dedicated])
    assert "cannot be read" in problem([tmp_path / "missing.json"])
    broken = tmp_path / "broken.json"
    broken.write_text('{\n "a": }')
    assert "broken.json:2: is no JSON" in problem([broken])
    broken.write_text("[" * 100_000)
    assert "[AB140]" in problem([broken])
