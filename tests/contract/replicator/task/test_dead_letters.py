"""Records that the target never takes are put aside where a flow says so, on real brokers; nobody else waits."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from confluent_kafka import Message

from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import OffsetsMode
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState, TaskStatus
from reconciler.replicator.driver import dead_letter_topics
from tests.contract.replicator.commit.test_translated import make
from tests.support.clusters.kafka import create, delete, patient, set_config
from tests.support.replicator.copying import REMOTE, Running, all_running, code, copy, fill, spec_of
from tests.support.replicator.translated import committed, contents

MODES: tuple[OffsetsMode, ...] = ("identical", "translated")
LARGE = b"x" * 1_500_000


def flow_spec(source: Cluster, target: Cluster, mode: OffsetsMode, letters: str | None, *include: str) -> FlowSpec:
    spec = spec_of(source, target, *include)
    return replace(spec, flow=replace(spec.flow, offsets=mode, dlq=letters))


def send(cluster: EmbeddedCluster, topic: str, *values: bytes, key: bytes | None = b"k", codec: str = "none") -> None:
    """Produce one batch with a record for each value."""
    producer = patient(cluster, topic, **{"message.max.bytes": 8_000_000, "compression.type": codec})
    for value in values:
        producer.produce(topic, value, key, 0, headers=[("trace", b"7"), ("trace", None)], timestamp=1_700_000_000_000)
    assert producer.flush(30) == 0


def headers(letter: Message) -> dict[str, str]:
    return {name: value.decode() for name, value in letter.headers() or [] if name.startswith("anabranch.") and value}


@pytest.mark.parametrize("mode", MODES)
def test_a_record_too_large_is_put_aside_with_where_it_came_from(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    mode: OffsetsMode,
) -> None:
    letters = f"{topic_name}-dead"
    make(source_cluster, target_cluster, [topic_name, f"{topic_name}-other"])
    set_config(source_cluster, topic_name, "max.message.bytes", "8000000")
    create(target_cluster, letters, 3, {"max.message.bytes": "8000000"})
    send(source_cluster, topic_name, b"1", b"2")
    # Also in the middle of a batch, and twice: one right behind the other.
    send(source_cluster, topic_name, b"3", LARGE, LARGE + b"!", b"4")
    send(source_cluster, topic_name, b"5", key=None)
    fill(source_cluster, f"{topic_name}-other", 500)
    spec = flow_spec(source, target, mode, letters, f"{topic_name}.*")
    with Running(spec) as running:
        running.wait()
        send(source_cluster, topic_name, b"6")
        status = running.settled_again()
        assert all_running(status.partitions), [str(p.reason) for p in status.partitions]
    remote = spec.flow.remote_topic(topic_name)
    left = [one for one in contents(source, topic_name) if len(one[1]) < 100]  # type: ignore[arg-type]
    for isolation in ("read_committed", "read_uncommitted"):
        assert contents(target, remote, 0, isolation) == left
    assert [one[1] for one in left] == [b"1", b"2", b"3", b"4", b"5", b"6"]
    if mode == "identical":
        assert [one.offset() for one in committed(target, remote)] == [0, 1, 2, 5, 6, 7]
    assert len(contents(target, spec.flow.remote_topic(f"{topic_name}-other"))) == 500
    first, second = committed(target, letters, 0)
    assert (first.key(), first.value(), second.value()) == (b"k", LARGE, LARGE + b"!")
    assert (first.headers() or [])[:2] == [("trace", b"7"), ("trace", None)]
    told = headers(first)
    assert "1,500,0" in told.pop("anabranch.reason")
    assert told == {
        "anabranch.flow": spec.flow.name,
        "anabranch.source": "east",
        "anabranch.topic": topic_name,
        "anabranch.partition": "0",
        "anabranch.offset": "3",
        "anabranch.timestamp": "1700000000000",
        "anabranch.remote": remote,
    }
    assert headers(second)["anabranch.offset"] == "4"
    # Nothing of it is done again, and the copy goes on behind it.
    send(source_cluster, topic_name, b"7")
    copy(flow_spec(source, target, mode, letters, f"{topic_name}.*"))
    assert [one[1] for one in contents(target, remote)][-2:] == [b"6", b"7"]
    assert len(committed(target, letters, 0)) == 2


@pytest.mark.parametrize("mode", MODES)
def test_records_that_the_topic_refuses_are_put_aside_a_batch_at_a_time(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    mode: OffsetsMode,
) -> None:
    letters = f"{topic_name}-dead"
    make(source_cluster, target_cluster, [topic_name])
    create(target_cluster, letters)
    remote = f"east.{topic_name}"
    # A compacted topic takes no record without a key; its own cleaner is kept away.
    set_config(target_cluster, remote, "cleanup.policy", "compact,delete")
    set_config(target_cluster, remote, "min.compaction.lag.ms", "3600000")
    producer = patient(source_cluster, topic_name, **{"compression.type": "lz4"})
    bad = [0, *range(17, 20), *range(21, 60, 3)]
    for number in range(60):
        producer.produce(topic_name, b"%d" % number, None if number in bad else b"k%d" % number, 0)
    assert producer.flush(30) == 0
    # Without a place for them it parks, and names them all.
    parked = copy(flow_spec(source, target, mode, None, topic_name)).at(topic_name)
    assert (parked.state, code(parked)) == (PartitionState.PARKED, "AB217")
    words = (
        f"{len(bad)} of the 60 records in the batch at source offset 0 of {topic_name}/0, at offsets 0, 17 to 19, 21"
    )
    assert words in str(parked.reason)
    spec = flow_spec(source, target, mode, letters, topic_name)
    status = copy(spec).at(topic_name)
    assert (status.state, status.lag) == (PartitionState.RUNNING, 0)
    assert [one[1] for one in contents(target, remote)] == [b"%d" % n for n in range(60) if n not in bad]
    told = [(one.value(), headers(one)["anabranch.offset"]) for one in committed(target, letters)]
    assert told == [(b"%d" % n, str(n)) for n in bad]
    # One for the batch, and what a busy broker may ask for.
    assert status.metrics is not None
    assert status.metrics.retries < 5


def test_where_offsets_are_shifted_what_was_put_aside_is_left_out_by_its_own_offset(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    letters, remote = f"{topic_name}-dead", f"east.{topic_name}"
    create(target_cluster, letters, 1, {"max.message.bytes": "8000000"})
    create(source_cluster, topic_name)
    create(target_cluster, remote, 1, REMOTE)
    send(source_cluster, topic_name, *(b"old-%d" % number for number in range(5)))
    spec = flow_spec(source, target, "identical", letters, topic_name)
    spec = replace(spec, flow=replace(spec.flow, on_recreate="restart"))
    copy(spec)
    delete(source_cluster, topic_name)
    create(source_cluster, topic_name, 1, {"max.message.bytes": "8000000"})
    send(source_cluster, topic_name, b"1")
    send(source_cluster, topic_name, LARGE)
    send(source_cluster, topic_name, b"2")
    found = copy(replace(spec, run=f"{spec.run}-again")).at(topic_name)
    assert (found.state, found.lag) == (PartitionState.RUNNING, 0), str(found.reason)
    assert [one[1] for one in contents(target, remote)][-2:] == [b"1", b"2"]
    assert [headers(one)["anabranch.offset"] for one in committed(target, letters)] == ["1"]


def parked_behind_one(expected: str, word: TaskStatus) -> bool:
    """Whether a partition is parked for a reason, with one record copied."""
    return any((one.state, code(one), one.position) == (PartitionState.PARKED, expected, 1) for one in word.partitions)


@pytest.mark.parametrize("mode", MODES)
def test_without_a_place_for_it_a_record_too_large_parks_alone_until_the_limit_is_raised(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    mode: OffsetsMode,
) -> None:
    letters = f"{topic_name}-dead"
    make(source_cluster, target_cluster, [topic_name, f"{topic_name}-other"])
    set_config(source_cluster, topic_name, "max.message.bytes", "8000000")
    create(target_cluster, letters)
    send(source_cluster, topic_name, b"1", LARGE, b"2")
    fill(source_cluster, f"{topic_name}-other", 500)
    remote = f"east.{topic_name}"
    for aside, expected in ((None, "AB212"), (letters, "AB229")):
        with Running(flow_spec(source, target, mode, aside, f"{topic_name}.*")) as running:
            # With translated offsets the position counts when it is committed. Before it is parked it is tried again.
            status = running.wait(partial(parked_behind_one, expected))
            found = next(one for one in status.partitions if one.topic == topic_name)
            assert "offset 1 has 1,500,0" in str(found.reason)
            fill(source_cluster, f"{topic_name}-other", 100)
            running.wait(
                lambda word: all(one.lag == 0 for one in word.partitions if one.topic == f"{topic_name}-other")
            )
            if aside is None:
                continue
            set_config(target_cluster, remote, "max.message.bytes", "8000000")
            running.wait(lambda word: all(one.lag == 0 for one in word.partitions))
    assert contents(target, remote) == contents(source, topic_name)
    assert len(contents(target, f"{remote}-other")) == 700
    assert committed(target, letters) == []


def test_a_topic_for_dead_letters_that_is_not_there_is_an_error_before_anything_is_written(target: Cluster) -> None:
    spec = flow_spec(target, target, "identical", "nowhere", "orders")
    with pytest.raises(EnvironmentFault, match=r"topic nowhere: flow .* and it does not exist, .* \[AB363\]"):
        dead_letter_topics.check(target, [spec.flow])
    dead_letter_topics.check(target, [replace(spec.flow, dlq=None)])
