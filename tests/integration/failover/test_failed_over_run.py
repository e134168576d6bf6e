"""A running `replicate` while one of its flows is failed over, and when it is no more: the other flow goes on."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.recorded.failover import FailedOver
from reconciler.state.failovers import Failovers
from reconciler.state.running import copying
from tests.support.clusters.kafka import create, declared
from tests.support.commands.command import anabranch
from tests.support.replicator.copying import fill, log_end
from tests.support.replicator.replicating import Replicator
from tests.support.waiting import eventually

pytestmark = pytest.mark.spark

STOP_SECONDS = 400
RECORDS = 200
FILE = """\
version: 1
name: {name}
clusters:
  east: {{bootstrap: ["{east}"]}}
  west: {{bootstrap: ["{west}"]}}
flows:
  - {{from: east, to: west, name: {name}-one, topics: {{include: ["{topic}-one"]}}}}
  - {{from: east, to: west, name: {name}-two, topics: {{include: ["{topic}-two"]}}}}
"""


def states(file: Path) -> dict[str, dict[str, Any]]:
    answer = anabranch("status", file, "--format", "json")
    assert answer.code == 0, answer.stderr
    return {flow["name"].rpartition("-")[2]: flow for flow in json.loads(answer.stdout)["flows"]}


def test_a_flow_is_drained_when_it_is_failed_over_and_runs_again_when_it_is_not(
    source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str, tmp_path: Path
) -> None:
    name = topic_name.lower().replace("_", "-")[-40:].strip("-")
    file = tmp_path / "topology.yaml"
    facts = {"east": source_cluster.bootstrap, "west": target_cluster.bootstrap, "topic": topic_name}
    file.write_text(FILE.format(name=name, **facts))
    one, two = f"{topic_name}-one", f"{topic_name}-two"

    def write(*topics: str) -> None:
        for topic in topics:
            fill(source_cluster, topic, RECORDS)

    def copied() -> tuple[int, int]:
        return log_end(west, f"east.{one}"), log_end(west, f"east.{two}")

    for topic in (one, two):
        create(source_cluster, topic, 1)
    write(one, two)
    assert anabranch("apply", file, "--yes").code == 0
    west = declared("west", target_cluster)
    failovers, over = Failovers(west, name), FailedOver(f"{name}-one", "ending", time.time(), "ops@host", {})
    running = Replicator(file, tmp_path / "run")
    try:
        eventually("both are copied", lambda: copied() == (RECORDS, RECORDS), detail=running.said)
        failovers.put(over)
        eventually("it is drained", lambda: copying(west, name, over.flow) == [], detail=running.said)
        write(one, two)
        eventually("the other one goes on", lambda: copied()[1] == 2 * RECORDS, detail=running.said)
        assert copied()[0] == RECORDS
        eventually("status tells", lambda: states(file)["one"]["state"] == "failed over", detail=running.said)
        assert copying(west, name, over.flow) == []
        failovers.forget(over)
        eventually("it runs again", lambda: copied() == (2 * RECORDS, 2 * RECORDS), detail=running.said)
        running.terminate()
        assert running.wait(STOP_SECONDS) == 0
    finally:
        running.end()
        failovers.close()
