"""`adopt --from`: copies of MirrorMaker go on at exactly the next record, whatever it had noted when it ended."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from tests.support.clusters.kafka import create, declared, names, partitions
from tests.support.clusters.mirrormaker import FORMER, Make, mirrormaker, mirrormaker1
from tests.support.clusters.traffic import Traffic
from tests.support.commands.command import anabranch
from tests.support.commands.payments import name_of, write
from tests.support.replicator.copying import fill, log_ends
from tests.support.replicator.translated import Content, committed, contents
from tests.support.waiting import eventually

REFUSED = 4


@pytest.fixture
def clusters(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> tuple[EmbeddedCluster, EmbeddedCluster]:
    return source_cluster, target_cluster


@pytest.fixture
def file(tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> Path:
    return write(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)


def mirrored(source: EmbeddedCluster, target: EmbeddedCluster, topic: str, first: int, end: int) -> None:
    """Copy records as MirrorMaker 2 does: the same key, value and time."""
    consumer = Consumer(source.client_config() | {"group.id": f"mirror-{topic}", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, first)])
    producer = Producer(target.client_config())
    for message in consumer.consume(end - first, 60):
        told = {"partition": 0, "timestamp": message.timestamp()[1], "headers": message.headers()}
        producer.produce(f"us-east.{topic}", message.value(), message.key(), **told)
    producer.flush()
    consumer.close()


def noted(target: EmbeddedCluster, offsets_topic: str, topic: str, last: int | None, connector: str = "M") -> None:
    """Note a position as Kafka Connect does."""
    producer = Producer(target.client_config())
    key = json.dumps([connector, {"cluster": "us-east", "partition": 0, "topic": topic}])
    producer.produce(offsets_topic, json.dumps({"offset": last}) if last is not None else None, key)
    producer.flush()


@pytest.mark.spark
def test_what_was_written_and_not_noted_is_not_copied_again(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    source, target = declared("us-east", source_cluster), declared("eu-west", target_cluster)
    offsets = f"{topic_name}-offsets"
    create(target_cluster, offsets, 1, {"cleanup.policy": "compact"})
    done = {"exact": (60, 59), "behind": (60, 41), "nothing": (0, None)}
    for end, (copied, last) in done.items():
        topic = f"{topic_name}-{end}"
        create(source_cluster, topic, 1)
        fill(source_cluster, topic, 100)
        create(target_cluster, f"us-east.{topic}", 1)
        mirrored(source_cluster, target_cluster, topic, 0, copied)
        if last is not None:
            noted(target_cluster, offsets, topic, last - 5)
            noted(target_cluster, offsets, topic, last)
    noted(target_cluster, offsets, f"{topic_name}-nothing", 3)
    noted(target_cluster, offsets, f"{topic_name}-nothing", None)
    command = ("adopt", file, "--from", "mm2", "--offsets-topic", offsets, "--yes")
    adopted = anabranch(*command)
    assert adopted.code == 0, adopted.stderr
    for end in ("exact", "behind"):
        assert f"{topic_name}-{end}/0 goes on at offset 60" in adopted.stderr
    assert anabranch("apply", file, "--yes").code == 0
    assert anabranch("replicate", file, "--until-caught-up").code == 0
    for end in done:
        topic = f"{topic_name}-{end}"
        assert contents(target, f"us-east.{topic}") == contents(source, topic), end
    # Once there is a position of ours, nothing is taken over any more.
    again = anabranch(*command)
    assert (again.code, "goes on at" in again.stderr) == (0, False)


def test_what_cannot_be_taken_over_is_refused_before_anything_is_adopted(
    file: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    offsets = f"{topic_name}-offsets"
    create(target_cluster, offsets, 1, {"cleanup.policy": "compact"})
    create(source_cluster, topic_name, 1)
    fill(source_cluster, topic_name, 10)
    create(target_cluster, f"us-east.{topic_name}", 1)
    mirrored(source_cluster, target_cluster, topic_name, 0, 5)
    command = ("adopt", file, "--from", "mm2", "--offsets-topic", offsets, "--yes")
    unknown = anabranch(*command)
    assert (unknown.code, "[AB414]" in unknown.stderr) == (REFUSED, True), unknown
    noted(target_cluster, offsets, topic_name, 4, "one")
    noted(target_cluster, offsets, topic_name, 2, "other")
    several = anabranch(*command)
    assert (several.code, "one, other" in several.stderr) == (REFUSED, True), several
    assert "[AB401]" in anabranch("plan", file).stderr, "nothing was adopted"
    assert anabranch(*command, "--connector", "one").code == 0
    usage = anabranch("adopt", file, "--from", "mm1", "--yes")
    assert (usage.code, "--group" in usage.stderr) == (2, True)
    assert anabranch("adopt", file, "--group", "x", "--yes").code == 2


@pytest.mark.parametrize("where", ["source", "target"])
def test_mirus_goes_on_at_what_it_noted_and_at_what_is_proven(
    where: str, tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    config = {
        "connector.class": "com.salesforce.mirus.MirusSourceConnector",
        "topics.regex": f"{topic_name}-(whole|mixed)",
        "destination.topic.name.prefix": "us-east.",
        "consumer.bootstrap.servers": source_cluster.bootstrap,
        "destination.consumer.bootstrap.servers": target_cluster.bootstrap,
    }
    (tmp_path / "source.json").write_text(json.dumps({"name": "mirus", "config": config}))
    file = tmp_path / "mirus.yaml"
    made = anabranch("convert", tmp_path / "source.json", "--out", file, "--name", name_of(topic_name))
    assert made.code == 0, made.stderr
    offsets = f"{topic_name}-offsets"
    kept = {"source": source_cluster, "target": target_cluster}[where]
    create(kept, offsets, 1, {"cleanup.policy": "compact"})
    producer = Producer(kept.client_config())
    for kind in ("whole", "mixed"):
        topic = f"{topic_name}-{kind}"
        create(source_cluster, topic, 1)
        fill(source_cluster, topic, 100)
        create(target_cluster, f"us-east.{topic}", 1)
        mirrored(source_cluster, target_cluster, topic, 0, 60)
        for offset in (30, 50):
            key = json.dumps(["mirus", {"topic": topic, "partition": 0}])
            producer.produce(offsets, json.dumps({"offset": offset}), key)
    producer.flush()
    # As without `enable.partition.matching`: a record of another partition stands among those of the original.
    other = Producer(target_cluster.client_config())
    other.produce(f"us-east.{topic_name}-mixed", b"of another partition", partition=0)
    other.flush()
    mirrored(source_cluster, target_cluster, f"{topic_name}-mixed", 61, 62)
    missing = anabranch("adopt", file, "--from", "mirus", "--yes")
    assert (missing.code, "offset.storage.topic of Mirus' workers" in missing.stderr) == (2, True), missing.stderr
    adopted = anabranch("adopt", file, "--from", "mirus", "--offsets-topic", offsets, "--yes")
    assert adopted.code == 0, adopted.stderr
    assert f"{topic_name}-whole/0 goes on at offset 60" in adopted.stderr, adopted.stderr
    assert f"{topic_name}-mixed/0 goes on at offset 50" in adopted.stderr, adopted.stderr
    read = anabranch("offsets", "read", file, "--flow", "source-destination", "--output", "json")
    assert {row["topic"]: row["offset"] for row in json.loads(read.stdout)["offsets"]} == {
        f"{topic_name}-whole": 60,
        f"{topic_name}-mixed": 50,
    }


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("offsets", ["identical", "translated"])
def test_a_flow_is_handed_back_to_a_live_mirror_maker_2(
    tmp_path: Path,
    file: Path,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    offsets: str,
) -> None:
    """All records once and in their order: those that we have copied, and those that it copies from then on."""
    records = 2_000
    create(source_cluster, topic_name, 2)
    source, target = declared("us-east", source_cluster), declared("eu-west", target_cluster)
    file.write_text(file.read_text().replace("tasks: 2}", f"tasks: 2, offsets: {offsets}}}"))
    fill(source_cluster, topic_name, records, 2)
    assert anabranch("apply", file, "--yes").code == 0
    assert anabranch("replicate", file, "--until-caught-up").code == 0
    command = ("release", file, "--flow", "us-east-eu-west", "--to", "mm2", "--yes")
    for _ in range(2):
        released = anabranch(*command)
        assert released.code == 0, released.stderr
        assert f"{topic_name}/1 goes on at offset {records // 2} in us-east.{topic_name}" in released.stderr
    fill(source_cluster, topic_name, records, 2)
    copy = f"us-east.{topic_name}"
    with mirrormaker(source_cluster, target_cluster, ("us-east", "eu-west"), topic_name, tmp_path):
        eventually("it copies the rest", lambda: sum(map(len, both(target, copy))), lambda found: found >= 2 * records)
        # It notes a position a second after that.
        eventually(
            "it has noted its positions",
            lambda: noted_of(target_cluster, topic_name),
            lambda found: {json.loads(value)["offset"] for value in found.values()} == {records - 1},
        )
    assert both(target, copy) == both(source, topic_name)
    # Its own keys are those that were written: none stands there twice.
    assert len(noted_of(target_cluster, topic_name)) == 2


def both(cluster: Cluster, topic: str) -> list[list[Content]]:
    return [contents(cluster, topic, number) for number in range(2)]


def noted_of(cluster: EmbeddedCluster, topic: str) -> dict[bytes, bytes]:
    """Return the newest values with a topic's name in their keys, where a dedicated MirrorMaker 2 keeps its offsets."""
    at, found = "mm2-offsets.us-east.internal", dict[bytes, bytes]()
    for number in range(partitions(cluster, at)):
        for message in committed(declared("eu-west", cluster), at, number):
            key, value = message.key(), message.value()
            if key is not None and value is not None and topic.encode() in key:
                found[key] = value
    return found


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
@pytest.mark.parametrize("exactly_once", [False, True], ids=["at least once", "exactly once"])
@pytest.mark.parametrize("version", ["", FORMER], ids=["embedded", "former"])
def test_a_live_mirror_maker_2_is_followed(
    version: str,
    exactly_once: bool,
    ending: signal.Signals,
    tmp_path: Path,
    topic_name: str,
    clusters: tuple[EmbeddedCluster, EmbeddedCluster],
) -> None:
    source_cluster, target_cluster = clusters
    file = write(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)
    records = 30_000
    create(source_cluster, topic_name, 1)
    source, target = declared("us-east", source_cluster), declared("eu-west", target_cluster)
    traffic = Traffic(source_cluster, topic_name, 1, records, 1_000, per_second=500)
    command = ("adopt", file, "--from", "mm2", "--yes")
    make = Make(version, exactly_once, ending)
    with mirrormaker(source_cluster, target_cluster, ("us-east", "eu-west"), topic_name, tmp_path, make):
        traffic.start()
        copy = f"us-east.{topic_name}"
        eventually("it has made the copy", lambda: copy in names(target_cluster))
        eventually("it copies", lambda: log_ends(target, copy, 1) > 5_000)
        running = anabranch(*command)
        assert (running.code, "[AB413]" in running.stderr) == (REFUSED, True), running
    adopted = anabranch(*command)
    assert adopted.code == 0, adopted.stderr
    print(adopted.stderr)
    assert anabranch("apply", file, "--yes").code == 0
    traffic.finish()
    assert anabranch("replicate", file, "--until-caught-up").code == 0
    originals = contents(source, topic_name)
    # What a killed MirrorMaker 2 has begun ends by its time-out; until then readers of committed records stop there.
    found = eventually(
        "readers of committed records get all",
        lambda: contents(target, copy),
        lambda found: len(found) >= len(originals),
    )
    assert (len(found), found == originals) == (records, True)


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL], ids=["ended", "killed"])
def test_a_live_mirror_maker_1_is_followed(
    ending: signal.Signals, tmp_path: Path, topic_name: str, clusters: tuple[EmbeddedCluster, EmbeddedCluster]
) -> None:
    """Under the same names at both sides, from its own files; what it had written and not committed stands once."""
    records = 30_000
    for cluster in clusters:
        create(cluster, topic_name, 1)
    source, target = declared("source", clusters[0]), declared("target", clusters[1])
    traffic = Traffic(clusters[0], topic_name, 1, records, 1_000, per_second=500)
    group, file = f"mirrors-{topic_name}", tmp_path / "mirrors.yaml"
    command = ("adopt", file, "--from", "mm1", "--group", group, "--yes")
    with mirrormaker1(*clusters, group, topic_name, tmp_path, ending) as (consumer, producer):
        options = ("--consumer.config", consumer, "--producer.config", producer, "--include", topic_name)
        converted = anabranch("convert", *options, "--out", file, "--name", name_of(topic_name))
        assert converted.code == 0, converted.stderr
        traffic.start()
        eventually("it copies", lambda: log_ends(target, topic_name, 1) > 5_000)
        running = anabranch(*command)
        assert (running.code, "[AB413]" in running.stderr) == (REFUSED, True), running
    # A consumer that was killed is a member of its group until its session ends.
    adopted = eventually("it is taken over", lambda: anabranch(*command), lambda ended: ended.code == 0)
    print(adopted.stderr)
    applied = anabranch("apply", file, "--yes")
    assert applied.code == 0, applied.stderr
    traffic.finish()
    assert anabranch("replicate", file, "--until-caught-up").code == 0
    found, originals = contents(target, topic_name), contents(source, topic_name)
    assert (len(found), found == originals) == (records, True)
