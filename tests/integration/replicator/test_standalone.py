"""Tasks on the executors of a Spark cluster: one is lost, and no record with it; one with too few slots is refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bench.competitors.standalone import CORES, Standalone, standalone
from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create, declared
from tests.support.clusters.scene import ON_EXECUTORS
from tests.support.clusters.traffic import Traffic
from tests.support.commands.command import anabranch
from tests.support.replicator.copying import assert_copied
from tests.support.replicator.replicating import Replicator, wait_until_copying
from tests.support.waiting import eventually

pytestmark = pytest.mark.spark

PARTITIONS = 4
END_SECONDS = 400
ENVIRONMENT = 1

DECLARATION = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{source}"], datacenter: dc1}}
  west: {{bootstrap: ["{target}"], datacenter: dc2}}
{spark}flows:
  - {{from: east, to: west, tasks: {tasks}, topics: {{include: ["{name}"]}}}}
"""


def lose_one(spark: Standalone) -> None:
    """Kill the executor on one worker, of those that stand on both."""
    there = spark.executors()
    assert [len(executors) for executors in there] == [1, 1]
    there[0][0].kill()


def has_two(spark: Standalone) -> bool:
    return sum(map(len, spark.executors())) == 2


@pytest.mark.long
def test_a_lost_executor_costs_no_record(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    name = f"s{topic_name[-8:]}"
    file = tmp_path / "topology.yaml"
    fields = {"name": name, "source": source_cluster.bootstrap, "target": target_cluster.bootstrap}
    source, target = declared("east", source_cluster), declared("west", target_cluster)
    create(source_cluster, name, PARTITIONS)
    traffic = Traffic(source_cluster, name, PARTITIONS, 60_000, 20_000, per_second=1_000)
    with standalone(tmp_path / "spark") as spark:
        fields["spark"] = ON_EXECUTORS.format(master=spark.master)
        file.write_text(DECLARATION.format(**fields, tasks=2))
        assert anabranch("apply", file, "--yes").code == 0
        traffic.start()
        running = Replicator(file, tmp_path)
        try:
            # One task may copy before the other one has begun, beside what the gate had written of the flow.
            eventually(
                "each task has half of the partitions",
                lambda: [
                    (status.task, len(status.partitions))
                    for status in wait_until_copying(target, running, 0.0)
                    if status.task >= 0
                ],
                lambda found: found == [(0, 2), (1, 2)],
            )
            lose_one(spark)
            killed = time.time()
            after = wait_until_copying(target, running, killed)
            while len(after) < 2 or not has_two(spark):
                assert time.time() < killed + END_SECONDS
                after = wait_until_copying(target, running, killed)
            traffic.finish()
            running.terminate()
            assert running.wait(END_SECONDS) == 0, running.said()
            # One more run takes what the first had not copied yet.
            last = Replicator(file, tmp_path, "--until-caught-up")
            assert last.wait(4 * END_SECONDS) == 0, last.said()
            last.end()
        finally:
            running.end()
        assert_copied(source, name, target, f"east.{name}", 60_000)
        tasks = 2 * CORES + 1
        file.write_text(DECLARATION.format(**fields, tasks=tasks))
        assert anabranch("apply", file, "--yes").code == 0
        refused = anabranch("replicate", file, "--state-dir", tmp_path / "state")
        said = " ".join(refused.stderr.split())
        assert refused.code == ENVIRONMENT, said
        assert f"{spark.master} gives {tasks - 1} slots, and there are {tasks} tasks" in said
        assert "[AB321]" in said
