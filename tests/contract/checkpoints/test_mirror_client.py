"""Our client and Kafka's own for MirrorMaker 2: the same answers about what we wrote, and what is told of troubles."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AclOperation

from reconciler.checkpoints.mirrormaker.formats import Checkpoint, checkpoint_key
from reconciler.checkpoints.service.emit import CheckpointWriter, HeartbeatWriter
from reconciler.client import MirrorClient, ReplicationPolicy, declared_client, translate_offsets
from reconciler.embedded import ClusterOptions, EmbeddedCluster
from reconciler.model.base.errors import DeclaredInputError, EnvironmentFault, Refused, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from tests.support.clusters.kafka import allow, create
from tests.support.clusters.mirror_java import IDENTITY, JavaFailed, java_answers, our_answers

ROOT = Path(__file__).parents[3]
REFERENCE = (ROOT / "docs" / "reference" / "client.md").read_text(encoding="utf-8")
GROUP = "payments"
USERS = {"admin": "admin-secret", "reader": "reader-secret"}
DECLARATION = """\
version: 1
name: payments
clusters:
  {source}: {{bootstrap: "127.0.0.1:1"}}
  west: {{bootstrap: "{bootstrap}"}}
flows:
  - {{from: {source}, to: west, topics: {{include: [orders]}}}}
"""


@pytest.fixture
def source(topic_name: str) -> str:
    """An alias that no other test has; the shared cluster keeps what is written under it."""
    return topic_name.replace("_", "-")


def write_all(target: Cluster, source: str, separator: str = ".", prefix: str | None = None) -> CheckpointWriter:
    """Write checkpoints of two groups, some of them twice."""
    topic = f"{source}{separator}orders" if prefix is None else f"{prefix}orders"
    writer = CheckpointWriter(target, source, separator)
    writer.emit([Checkpoint(GROUP, topic, number, 100 * number, 90 * number, "old") for number in range(4)])
    writer.emit([Checkpoint(GROUP, topic, 2, 555, 444, 'ünï "quoted" \\ \t'), Checkpoint("other", topic, 0, 7, 7)])
    return writer


@pytest.mark.parametrize(
    ("policy", "policy_class"), [(ReplicationPolicy(), ""), (ReplicationPolicy("identity"), IDENTITY)]
)
def test_the_java_client_reads_what_we_write_as_ours_does(
    policy: ReplicationPolicy, policy_class: str, target_cluster: EmbeddedCluster, target: Cluster, source: str
) -> None:
    writer = write_all(target, source, prefix="" if policy_class else None)
    writer.emit([Checkpoint("gone", "orders", 0, 1, 1)])
    assert writer.take_back(lambda key: key.group == "gone") == 1
    HeartbeatWriter(target, source, "west").beat(1_700_000_000_000)
    for topic in ("orders", "heartbeats", "far.heartbeats", "far.orders"):
        create(target_cluster, f"{source}.{topic}")
    theirs = java_answers(target_cluster, source, GROUP, policy_class)
    ours = our_answers(MirrorClient(target_cluster.client_config(), policy), source, GROUP)
    assert ours == theirs
    topic = "orders" if policy_class else f"{source}.orders"
    assert ours["translateOffsets"] == [
        [topic, 0, 0, "old"],
        [topic, 1, 90, "old"],
        [topic, 2, 444, 'ünï "quoted" \\ \t'],
        [topic, 3, 270, "old"],
    ]
    assert f"{source}.checkpoints.internal" in ours["checkpointTopics"]
    assert {source, "far"} <= set(ours["upstreamClusters"])
    assert (ours["replicationHops"][source], ours["replicationHops"]["nowhere"]) == (1, -1)
    assert (f"{source}.far.orders" in ours["remoteTopicsOfSource"]) is (not policy_class)


@pytest.mark.parametrize(
    ("policy", "policy_class"),
    [(ReplicationPolicy("default", "_"), ""), (ReplicationPolicy("identity", "_"), IDENTITY)],
)
def test_with_another_separator_both_find_the_same_topics(
    policy: ReplicationPolicy, policy_class: str, target_cluster: EmbeddedCluster, target: Cluster, source: str
) -> None:
    # As `replicate` writes them: beside what MirrorMaker 2 has left no other name could be made.
    write_all(target, source, Flow("all", source, "west", Selection(()), policy=policy).checkpoints_separator)
    create(target_cluster, f"{source}_heartbeats")
    theirs = java_answers(target_cluster, source, GROUP, policy_class, separator="_")
    ours = our_answers(MirrorClient(target, policy), source, GROUP)
    # Ours knows the names with dots as well, which MirrorMaker 2 used before it knew separators.
    assert f"{source}_checkpoints_internal" in theirs["checkpointTopics"]
    assert set(theirs.pop("checkpointTopics")) <= set(ours.pop("checkpointTopics"))
    assert {key: ours[key] for key in ("translateOffsets", "replicationHops", "upstreamClusters")} == {
        key: theirs[key] for key in ("translateOffsets", "replicationHops", "upstreamClusters")
    }
    assert ours["replicationHops"][source] == 1


def test_a_topic_with_a_dot_in_its_name_is_found_under_another_separator_too(target: Cluster, source: str) -> None:
    write_all(target, source)
    found = translate_offsets(target, source, "other", ReplicationPolicy(separator="_"))
    assert [(at.topic, at.partition, at.offset) for at in found] == [(f"{source}.orders", 0, 7)]


def test_java_clients_end_at_a_tombstone_which_is_why_none_is_written(
    target_cluster: EmbeddedCluster, target: Cluster, source: str
) -> None:
    writer = write_all(target, source)
    producer = Producer(target_cluster.client_config() | {"log_level": "2"})
    (other,) = (key for key in writer.refresh() if key.group == "other")
    producer.produce(writer.topic, None, checkpoint_key(other))
    assert producer.flush(30) == 0
    with pytest.raises(JavaFailed, match="NullPointerException"):
        java_answers(target_cluster, source, GROUP)
    client = MirrorClient(target)
    assert len(client.remote_consumer_offsets(GROUP, source)) == 4
    assert client.remote_consumer_offsets("other", source) == []


def test_offsets_are_what_a_consumer_takes(target: Cluster, source: str) -> None:
    write_all(target, source)
    found = MirrorClient(target).remote_consumer_offsets(GROUP, source)
    assert all(isinstance(at, TopicPartition) and at.error is None for at in found)
    assert [(at.partition, at.offset) for at in found] == [(0, 0), (1, 90), (2, 444), (3, 270)]


def test_metadata_that_confluent_kafka_has_committed_is_taken_by_it_again(target: Cluster, source: str) -> None:
    writer = CheckpointWriter(target, source)
    writer.emit([Checkpoint(GROUP, "orders", 0, 5, 5, "its own\0")])
    (at,) = MirrorClient(target).remote_consumer_offsets(GROUP, source)
    assert (at.offset, at.metadata) == (5, "its own")
    assert MirrorClient(target).checkpoints(source)[0].metadata == "its own\0"


def test_checkpoints_are_told_of_all_groups_of_one_and_of_those_that_a_pattern_matches(
    target: Cluster, source: str
) -> None:
    write_all(target, source)
    client = MirrorClient(target)
    everything = client.checkpoints(source)
    assert [one.group for one in everything] == ["other", *4 * [GROUP]]
    assert (everything[3].upstream, everything[3].downstream) == (555, 444)
    assert client.checkpoints(source, GROUP) == everything[1:]
    assert client.checkpoints(source, re.compile("o.*")) == everything[:1]
    assert client.checkpoints(source, re.compile("o")) == []


def test_a_topology_file_says_addresses_policies_and_which_prefixes_are_clusters(
    target_cluster: EmbeddedCluster, target: Cluster, source: str, tmp_path: Path
) -> None:
    file = tmp_path / "payments.yaml"
    file.write_text(DECLARATION.format(source=source, bootstrap=target_cluster.bootstrap))
    write_all(target, source)
    for topic in (f"{source}.heartbeats", f"stranger-of-{source}.heartbeats", f"{source}.orders"):
        create(target_cluster, topic)
    client = declared_client(file, "west")
    assert len(client.remote_consumer_offsets(GROUP, source)) == 4
    assert client.upstream_clusters() == {source}
    assert client.remote_topics() == {f"{source}.heartbeats", f"{source}.orders"}
    assert declared_client([str(file)], "west").replication_hops(source) == 1
    with pytest.raises(ValueError, match=f"no cluster north in payments; there are {source}, west"):
        declared_client(file, "north")
    with pytest.raises(DeclaredInputError):
        declared_client(tmp_path / "none.yaml", "west")


def test_without_checkpoints_of_a_cluster_it_says_which_there_are(target: Cluster, source: str) -> None:
    write_all(target, source)
    with pytest.raises(EnvironmentFault) as caught:
        translate_offsets(target, f"not-{source}", GROUP)
    (problem,) = caught.value.problems
    assert problem.code == "AB640"
    assert f"expected topic not-{source}.checkpoints.internal; " in problem.message
    assert f"{source}.checkpoints.internal" in problem.message
    assert MirrorClient(target).remote_consumer_offsets("nobody", source) == []


def test_another_cluster_than_the_declared_one_is_refused(target_cluster: EmbeddedCluster) -> None:
    other = Cluster("west", tuple(target_cluster.bootstrap.split(",")), cluster_id="another")
    with pytest.raises(Refused, match="AB423"):
        MirrorClient(other).checkpoint_topics()


def test_settings_without_brokers_are_refused_and_those_of_nobody_end_in_time() -> None:
    with pytest.raises(ValueError, match=r"expected bootstrap\.servers"):
        MirrorClient({"security.protocol": "PLAINTEXT"})
    with pytest.raises(Unreachable, match=r"cluster 127\.0\.0\.1:1: does not answer"):
        MirrorClient({"bootstrap.servers": "127.0.0.1:1"}, timeout=1).upstream_clusters()


def test_a_consumers_own_settings_may_be_handed_on_as_they_are(target: Cluster, source: str) -> None:
    write_all(target, source)
    settings = {
        "bootstrap.servers": ",".join(target.addresses),
        "group.id": GROUP,
        "on_commit": print,
        "key.deserializer": str,
    }
    assert MirrorClient(settings).checkpoints(source, GROUP) == MirrorClient(target).checkpoints(source, GROUP) != []


@pytest.fixture(scope="module")
def secured() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster("secured", ClusterOptions(users=USERS)) as cluster:
        yield cluster


def test_who_is_not_let_in_or_may_not_read_is_told_so(secured: EmbeddedCluster, source: str) -> None:
    admin, reader = secured.client_config("admin"), secured.client_config("reader")
    topic = f"{source}.checkpoints.internal"
    create(secured, topic)
    with pytest.raises(EnvironmentFault, match="does not let user reader in") as caught:
        translate_offsets(reader | {"sasl.password": "hunter2-Sq7"}, source, GROUP)
    assert caught.value.problems[0].code == "AB312"
    assert "hunter2" not in str(caught.value) + repr(MirrorClient(reader)._cluster)
    allow(secured, "reader", [topic], AclOperation.DESCRIBE)
    with pytest.raises(EnvironmentFault, match=f"user reader is not allowed READ on topic {topic}") as caught:
        translate_offsets(reader, source, GROUP)
    assert caught.value.problems[0].code == "AB313"
    allow(secured, "reader", [topic], AclOperation.READ)
    assert translate_offsets(reader, source, GROUP) == []
    assert MirrorClient(admin).checkpoint_topics() == {topic}


def programs(bootstrap: str, source: str) -> list[str]:
    """The programs of the reference, with this test's addresses and alias."""
    found = re.findall(r"^```python\n(.*?)^```$", REFERENCE, re.MULTILINE | re.DOTALL)
    return [one.replace("kafka.eu-west.example:9092", bootstrap).replace("us-east", source) for one in found]


def run(program: str, folder: Path) -> str:
    (folder / "program.py").write_text(program)
    ended = subprocess.run(
        [sys.executable, "program.py"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 0, (ended.stdout, ended.stderr)
    return ended.stdout


def test_the_programs_of_the_reference_run(
    target_cluster: EmbeddedCluster, target: Cluster, source: str, tmp_path: Path
) -> None:
    remote = f"{source}.orders"
    create(target_cluster, remote, 2)
    create(target_cluster, f"{source}.heartbeats")
    producer = Producer(target_cluster.client_config() | {"log_level": "2"})
    for number in range(20):
        producer.produce(remote, f"value {number}", partition=0)
    assert producer.flush(30) == 0
    writer = CheckpointWriter(target, source)
    writer.emit([Checkpoint("billing", remote, 0, 117, 17), Checkpoint("billing", remote, 1, 5, 0)])
    (tmp_path / "payments.yaml").write_text(
        DECLARATION.format(source=source, bootstrap=target_cluster.bootstrap).replace("west", "eu-west")
    )
    by_settings, by_file = programs(target_cluster.bootstrap, source)
    assert run(by_settings, tmp_path).splitlines() == [
        f"{remote} 0 17",
        f"{remote} 1 0",
        f"goes on with {remote} 0 17",
    ]
    assert run(by_file, tmp_path).splitlines() == [
        f"['{source}']",
        "1",
        f"['{source}.heartbeats', '{remote}']",
        f"{remote} 0 117 is here 17",
        f"{remote} 1 5 is here 0",
    ]
