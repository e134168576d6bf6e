"""Configurations as guides print them: converted, applied and run, with the results that these guides promise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.demo.compare import compare
from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create, declared, names
from tests.support.clusters.traffic import Traffic
from tests.support.commands.command import anabranch
from tests.support.converting import emr

pytestmark = pytest.mark.spark

RECORDS = 300


def produced(cluster: EmbeddedCluster, *topics: str) -> None:
    for topic in topics:
        create(cluster, topic, 2)
        Traffic(cluster, topic, 2, RECORDS, RECORDS).run()


def carried_out(file: Path) -> None:
    """Apply a converted file, and copy until all is there."""
    applied = anabranch("apply", file, "--yes")
    assert applied.code == 0, applied.stderr
    copied = anabranch("replicate", file, "--until-caught-up")
    assert copied.code == 0, copied.stderr


def converted(folder: Path, *arguments: object) -> Path:
    out = folder / "topology.yaml"
    made = anabranch("convert", *arguments, "--out", out)
    assert made.code == 0, made.stderr
    return out


def identical(source: EmbeddedCluster, topic: str, target: EmbeddedCluster, remote: str) -> None:
    found = compare(declared("a", source), topic, declared("b", target), remote, "read_committed")
    assert (found.is_identical, found.records) == (True, RECORDS), found.different


@pytest.mark.long
def test_three_connectors_of_a_guide_for_two_clusters(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    taken, left = f"foo-{topic_name}", f"bar-{topic_name}"
    produced(source_cluster, taken, left)
    paths = emr(tmp_path, source_cluster.bootstrap, f"{target_cluster.bootstrap};{target_cluster.bootstrap}", 1)
    # Topics of other tests begin with foo, too.
    source = json.loads(paths[0].read_text())
    paths[0].write_text(json.dumps(source | {"topics": f"^foo-{topic_name}.*"}))
    carried_out(converted(tmp_path, *paths, "--name", topic_name[-30:].strip("-")))
    there = names(target_cluster)
    assert {f"emrsource.{taken}", "emrsource.checkpoints.internal", "heartbeats"} <= there
    assert f"emrsource.{left}" not in there
    identical(source_cluster, taken, target_cluster, f"emrsource.{taken}")


@pytest.mark.long
def test_the_quick_start_of_mirus(tmp_path: Path, source_cluster: EmbeddedCluster, topic_name: str) -> None:
    produced(source_cluster, topic_name)
    config = {
        "name": "mirus-quickstart-source",
        "connector.class": "com.salesforce.mirus.MirusSourceConnector",
        "tasks.max": "5",
        "topics.whitelist": topic_name,
        "destination.topic.name.suffix": ".mirror",
        "destination.consumer.bootstrap.servers": source_cluster.bootstrap,
        "consumer.bootstrap.servers": source_cluster.bootstrap,
        "consumer.client.id": "mirus-quickstart",
        "consumer.key.deserializer": "org.apache.kafka.common.serialization.ByteArrayDeserializer",
    }
    path = tmp_path / "source.json"
    path.write_text(json.dumps(config))
    carried_out(converted(tmp_path, path, "--name", topic_name[-30:].strip("-")))
    identical(source_cluster, topic_name, source_cluster, f"{topic_name}.mirror")


def test_mirror_maker_1_keeps_names(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    produced(source_cluster, f"{topic_name}-us")
    arguments: list[object] = []
    path = tmp_path / "us.properties"
    path.write_text(f"bootstrap.servers={source_cluster.bootstrap}\ngroup.id=mirror\nauto.offset.reset=earliest\n")
    producer = tmp_path / "target.properties"
    producer.write_text(f"bootstrap.servers={target_cluster.bootstrap}\nacks=-1\n")
    arguments += ["--consumer.config", path, "--num.streams", "2", "--producer.config", producer]
    arguments += ["--whitelist", f'"{topic_name}.*"', "--name", topic_name[-30:].strip("-")]
    carried_out(converted(tmp_path, *arguments))
    identical(source_cluster, f"{topic_name}-us", target_cluster, f"{topic_name}-us")


def ran(*arguments: object) -> None:
    ended = anabranch(*arguments, "--until-caught-up")
    assert ended.code == 0, ended.stderr


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where converted files are kept."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "anabranch" / "converted"


def test_a_dedicated_mirror_maker_2_as_kip_382_has_it(
    tmp_path: Path, home: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    produced(source_cluster, topic_name)
    path = tmp_path / f"{topic_name[-30:].strip('-')}.properties"
    path.write_text(
        f"""\
# mm2.properties
clusters = us-west, us-east
cluster.us-west.brokers.list = {source_cluster.bootstrap}
cluster.us-east.brokers.list = {target_cluster.bootstrap}
topics = {topic_name}
groups = {topic_name}.*
emit.checkpoints.interval.seconds = 10
cluster.us-west.offset.storage.topic = mm2-offsets
connector.us-west->us-east.emit.heartbeats = false
"""
    )
    # As its script takes them: several aliases behind one option.
    ran("mirror-maker2", path, "--clusters", "us-east", "us-west")
    identical(source_cluster, topic_name, target_cluster, f"us-west.{topic_name}")
    (kept,) = home.glob("*.yaml")
    assert anabranch("plan", kept, "--detailed-exitcode").code == 0
    # Begun again, nothing is copied again.
    ran("mirror-maker2", path)
    identical(source_cluster, topic_name, target_cluster, f"us-west.{topic_name}")
    unknown = anabranch("mirror-maker2", path, "--clusters", "north")
    assert (unknown.code, "north" in unknown.stderr) == (2, True)


@pytest.mark.long
@pytest.mark.usefixtures("home")
def test_a_standalone_connector_as_kip_382_has_it(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    produced(source_cluster, topic_name)
    worker = tmp_path / "worker.properties"
    worker.write_text(f"bootstrap.servers = {target_cluster.bootstrap}\noffset.storage.file.filename=/tmp/offsets\n")
    connector = tmp_path / f"{topic_name[-30:].strip('-')}.properties"
    connector.write_text(
        f"""\
# connector.properties
name = local-mirror-source
connector.class = org.apache.kafka.connect.mirror.MirrorSourceConnector
tasks.max = 1
topics={topic_name}
source.cluster.alias = upstream
source.cluster.bootstrap.servers = {source_cluster.bootstrap}
# use ByteArrayConverter to ensure that in and out records are exactly the same
key.converter = org.apache.kafka.connect.converters.ByteArrayConverter
value.converter = org.apache.kafka.connect.converters.ByteArrayConverter
"""
    )
    ran("connect-standalone", worker, connector)
    identical(source_cluster, topic_name, target_cluster, f"upstream.{topic_name}")
