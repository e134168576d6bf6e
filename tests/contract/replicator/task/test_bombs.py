"""A batch of some kilobytes that holds half a gigabyte parks its partition, and costs its task next to nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.status import PartitionState, TaskStatus
from reconciler.wire import Loop, ProduceAsk, Wire
from tests.support.clusters.kafka import create
from tests.support.records.batches import ZSTD
from tests.support.records.bombs import bomb
from tests.support.replicator.copying import REMOTE, Running, at, code, fill, identical, log_end, spec_of
from tests.support.wire.peak import MIB

BOUND, SIZE = 48 * MIB, 512 * MIB
# What a task takes anyway, with a broker's answers and two codecs.
AIR = 96 * MIB
GOOD = 200


def write(cluster: Cluster, topic: str, data: bytes) -> None:
    """Produce a batch as it is to a topic's first partition."""
    loop = Loop()
    wire = Wire(loop, cluster, "tests", 60.0)

    async def go() -> None:
        await wire.connect()
        info = (await wire.topics([topic]))[topic]
        node = info.leader_of(0).node
        await wire.reach(node)
        (answer,) = await wire.produce(node, [ProduceAsk(topic, info.topic_id, 0, data)], None)
        assert answer.error == 0, answer

    try:
        loop.run(go)
    finally:
        wire.close()
        loop.close()


def high_water() -> int:
    """Return how many bytes of memory this process has had at most since `reset`."""
    (line,) = (one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def reset() -> int:
    """Begin to count anew (proc(5), clear_refs); return how many bytes of memory there are now."""
    Path("/proc/self/clear_refs").write_text("5")
    return high_water()


@pytest.mark.parametrize(
    ("compression", "configs", "dlq"),
    [
        ("lz4", {}, False),
        ("gzip", {}, True),
        ("source", {"message.timestamp.type": "LogAppendTime"}, False),
    ],
    ids=["another codec", "another codec, with dead letters", "append times"],
)
def test_a_bomb_parks_its_partition_and_the_others_go_on(
    *,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
    compression: str,
    configs: dict[str, str],
    dlq: bool,
) -> None:
    create(source_cluster, topic_name, 2, {"compression.type": "producer", **configs})
    create(target_cluster, f"east.{topic_name}", 2, REMOTE)
    if dlq:
        create(target_cluster, f"dead.{topic_name}")
    fill(source_cluster, topic_name, GOOD, 2, "zstd")
    write(source, topic_name, bomb(SIZE, ZSTD))
    fill(source_cluster, topic_name, GOOD, 2, "zstd")
    spec = spec_of(source, target, topic_name)
    flow = replace(spec.flow, compression=compression, largest_batch=BOUND, dlq=f"dead.{topic_name}" if dlq else None)
    spec = replace(spec, flow=flow)

    def is_told(status: TaskStatus) -> bool:
        return code(at(status, topic_name)) == "AB235" and at(status, topic_name, 1).position == GOOD

    before = reset()
    with Running(spec) as running:
        status = running.wait(is_told)
        parked, other = at(status, topic_name), at(status, topic_name, 1)
        assert (parked.state, parked.position) == (PartitionState.PARKED, GOOD // 2)
        assert parked.reason is not None
        for said in (f"source offset {GOOD // 2} ", f"more than {BOUND:,} decompressed", "largest-batch"):
            assert said in parked.reason.text
        assert (other.state, other.lag) == (PartitionState.RUNNING, 0)
        # It is tried again, and nothing changes.
        again = running.wait(lambda status: at(status, topic_name).metrics.retries > parked.metrics.retries)
        assert at(again, topic_name).position == GOOD // 2
        fill(source_cluster, topic_name, GOOD, 2, "zstd")
        running.wait(lambda status: at(status, topic_name, 1).position == GOOD + GOOD // 2)
        grown = high_water() - before
    assert grown < BOUND + AIR
    assert log_end(target, f"east.{topic_name}") == GOOD // 2
    if dlq:
        assert log_end(target, f"dead.{topic_name}") == 0


def test_it_passes_as_it_is_where_nothing_is_rewritten(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, source: Cluster, target: Cluster, topic_name: str
) -> None:
    create(source_cluster, topic_name, 1, {"compression.type": "producer"})
    create(target_cluster, f"east.{topic_name}", 1, REMOTE)
    fill(source_cluster, topic_name, GOOD)
    # Small enough for whoever compares.
    write(source, topic_name, bomb(64 * MIB, ZSTD))
    fill(source_cluster, topic_name, GOOD)
    spec = spec_of(source, target, topic_name)
    spec = replace(spec, flow=replace(spec.flow, largest_batch=MIB))
    with Running(spec) as running:
        running.wait()
        running.stop()
    assert identical(spec, topic_name) == 2 * GOOD + 1
