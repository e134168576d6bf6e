"""A failback to a source that has lost what was copied, by an unclean election of real brokers."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic, PartitionMetadata

from reconciler.cli import failback as failbacks
from reconciler.embedded import ClusterOptions, EmbeddedCluster
from tests.conftest import MakeClusters
from tests.support.clusters.consumers import leave_behind, offsets_of
from tests.support.clusters.kafka import admin, declared, metadata, wait_until_seen
from tests.support.commands.failing_over import MOSTLY_TRANSLATED, Pair, copy_back, named, read_from, write
from tests.support.replicator.copying import SECONDS, fill, log_end

QUICK_RETURN = {"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "250"}
UNCLEAN = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}


def await_partition(cluster: EmbeddedCluster, topic: str, until: Callable[[PartitionMetadata], bool]) -> int:
    """Wait until it holds for partition 0; return who leads it."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        one = metadata(cluster, topic).topics[topic].partitions.get(0)
        if one is not None and one.error is None and until(one):
            return int(one.leader)
        time.sleep(0.1)
    message = "the source never looked so"
    raise AssertionError(message)


def lose(pair: Pair, records: int, own: int) -> None:
    """Let the source copy some records, be failed over, lose them, and get others of its own."""
    east, topic = pair.east, pair.topic
    leader = await_partition(east, topic, lambda one: len(one.isrs) == 2)
    follower = 3 - leader
    east.kill_broker(follower)
    await_partition(east, topic, lambda one: one.isrs == [leader])
    fill(east, topic, records)
    pair.copy()
    assert pair.over("--yes").code == 0
    # It comes back alone and leads, without these.
    east.kill_broker(leader)
    east.start_broker(follower)
    await_partition(east, topic, lambda one: one.leader == follower)
    if own:
        fill(east, topic, own)
    east.start_broker(leader)
    await_partition(east, topic, lambda one: len(one.isrs) == 2)


@pytest.fixture(params=MOSTLY_TRANSLATED)
def pair(
    make_clusters: MakeClusters,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> Pair:
    """Makes a pair whose source may elect leaders uncleanly."""
    (east,) = make_clusters("three", options=ClusterOptions(nodes=3, overrides=QUICK_RETURN))
    topic = topic_name[-60:].strip("-")
    client = admin(east)
    client.create_topics([NewTopic(topic, 2, replica_assignment=[[1, 2], [1, 2]], config=UNCLEAN)])[topic].result(300)
    wait_until_seen(client, topic, 2)
    return Pair((east, target_cluster), topic, request.param, tmp_path, capsys, made=True)


def test_what_the_source_has_lost_comes_back_or_has_diverged(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failbacks, "_copy_back", copy_back)
    topic, here, there = pair.topic, declared("east", pair.east), declared("west", pair.west)

    # What is lost stands in the copy alone: it comes back with what is new, and groups find their place in it.
    lose(pair, 5, 0)
    write(pair.west, topic, named("new", 10))
    assert log_end(here, topic) == 100
    # Among what the source has lost.
    group, at = pair.group("a"), log_end(there, topic) - 13
    leave_behind(pair.west, group, {(topic, 0): at})
    back = pair.back("--yes")
    assert (back.code, pair.phase) == (0, None), back
    assert f"{topic}/0 at east has lost offsets 100 to 104" in " ".join(back.out.split())
    everything = read_from(pair.west, topic, 0)
    assert (read_from(pair.east, topic, 0), len(everything)) == (everything, 115)
    behind = read_from(pair.west, topic, at)
    assert (len(behind) > 10, read_from(pair.east, topic, offsets_of(pair.east, group)[topic, 0])) == (True, behind)
    write(pair.east, topic, ["more"])
    pair.copy()
    assert read_from(pair.west, topic, 0) == [*everything, "more"]

    # The source has as much again, of its own: nothing of that was copied, though the ends are the same.
    end = log_end(here, topic)
    lose(pair, 5, 5)
    write(pair.west, topic, named("newer", 10))
    assert log_end(here, topic) == end + 5
    refused = pair.back("--yes")
    assert (refused.code, "[AB705]" in refused.err, pair.phase) == (4, True, "over"), refused
    assert "has 5 records that were never copied" in refused.err
    assert f"its copy {topic} has 15 new ones" in refused.err
    kept = tmp_path / "kept"
    own = read_from(pair.east, topic, end)
    back = pair.back("--yes", "--rebuild", topic, "--export", kept)
    assert (back.code, pair.phase) == (0, None), back
    assert (len(own), len((kept / f"{topic}.jsonl").read_text().splitlines())) == (5, 5)
    everything = read_from(pair.west, topic, 0)
    assert read_from(pair.east, topic, 0) == everything
    assert everything[-10:] == named("newer", 10)
