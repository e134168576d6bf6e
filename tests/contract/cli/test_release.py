"""`release`: positions are noted as Kafka Connect keeps them, and what cannot be handed back is refused before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.checkpoints.translation.noting import note_for_connect
from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create, declared, names, partitions
from tests.support.commands.command import anabranch
from tests.support.commands.payments import write
from tests.support.replicator.copying import fill
from tests.support.replicator.translated import committed

REFUSED, USAGE = 4, 2
FLOW = ("--flow", "us-east-eu-west", "--to", "mm2")


@pytest.fixture
def file(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Path:
    create(source_cluster, topic_name, 2)
    return write(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)


def kept(cluster: EmbeddedCluster, topic: str) -> dict[bytes, bytes | None]:
    """Return the newest value of each key."""
    return {
        message.key() or b"": message.value()
        for number in range(partitions(cluster, topic))
        for message in committed(declared("eu-west", cluster), topic, number)
    }


def test_positions_are_noted_as_connect_keeps_them(
    file: Path, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    assert anabranch("apply", file, "--yes").code == 0
    # What stands in an identical copy is its position.
    fill(target_cluster, f"us-east.{topic_name}", 10)
    topic = f"{topic_name}-offsets"
    command = ("release", file, *FLOW, "--offsets-topic", topic, "--connector", "orders", "--yes")
    for _ in range(2):
        released = anabranch(*command)
        assert released.code == 0, released.stderr
        assert f"{topic_name}/0 goes on at offset 10 in us-east.{topic_name}" in released.stderr
        assert f"{topic_name}/1 begins at the start" in released.stderr
    key = f'["orders",{{"cluster":"us-east","partition":0,"topic":"{topic_name}"}}]'.encode()
    assert kept(target_cluster, topic) == {key: b'{"offset":9}'}
    assert partitions(target_cluster, topic) == 25
    assert "paused" in anabranch("status", file).stdout


def test_a_key_that_stands_there_is_kept_byte_by_byte(target_cluster: EmbeddedCluster, topic_name: str) -> None:
    cluster = declared("eu-west", target_cluster)
    note_for_connect(cluster, topic_name, "orders", "us-east", {("a", 0): 5, ("b", 0): 6, ("c", 0): None})
    note_for_connect(cluster, topic_name, "orders", "us-east", {("a", 0): 7, ("b", 0): None})
    note_for_connect(cluster, topic_name, "others", "us-east", {("a", 0): 1})
    stored = kept(target_cluster, topic_name)
    found = {(name, place["topic"]): stored[key] for key in stored for name, place in [json.loads(key)]}
    assert found == {("orders", "a"): b'{"offset":6}', ("orders", "b"): None, ("others", "a"): b'{"offset":0}'}
    # Each has one key.
    assert len(stored) == len(found)


def test_what_cannot_be_handed_back_is_refused(file: Path, target_cluster: EmbeddedCluster, topic_name: str) -> None:
    topic = f"{topic_name}-offsets"
    command = ("release", file, *FLOW, "--offsets-topic", topic, "--yes")
    nothing = anabranch(*command)
    assert (nothing.code, "[AB418]" in nothing.stderr) == (REFUSED, True), nothing.stderr
    text = file.read_text()
    file.write_text(text.replace("tasks: 2}", "tasks: 2, offsets: translated}"))
    assert anabranch("apply", file, "--yes").code == 0
    fill(target_cluster, f"us-east.{topic_name}", 10)
    unknown = anabranch(*command)
    assert (unknown.code, f"us-east.{topic_name}/0" in unknown.stderr) == (REFUSED, True), unknown.stderr
    rules = "policy: {type: rename, rules: [{from: '(.*)', to: 'copy-\\1'}]}"
    file.write_text(text.replace("tasks: 2}", f"tasks: 2, {rules}}}"))
    renamed = anabranch(*command)
    assert (renamed.code, "rename" in renamed.stderr) == (REFUSED, True), renamed.stderr
    file.write_text(text)
    assert anabranch("release", file, "--flow", "other", "--to", "mm2", "--yes").code == USAGE
    assert anabranch("release", file, *FLOW).code == USAGE
    assert topic not in names(target_cluster)
