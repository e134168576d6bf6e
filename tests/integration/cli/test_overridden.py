"""A running `replicate` goes by a change that is made through `serve`, and returns to its file with `apply`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.demo.compare import compare
from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create, declared, names
from tests.support.commands import one_flow
from tests.support.commands.command import anabranch
from tests.support.commands.serving import answer, ready, serving
from tests.support.replicator.copying import fill
from tests.support.replicator.replicating import Replicator
from tests.support.waiting import eventually

pytestmark = pytest.mark.spark

RECORDS = 300
STOP_SECONDS = 400


def wait_for_topics(url: str, topics: list[str], running: Replicator) -> None:
    """Wait until the tasks of a run copy to these topics, and to no other."""
    eventually(
        f"its tasks have {topics}",
        lambda: json.loads(answer(f"{url}/topics")[1])["east-west"]["topics"],
        lambda found: found == topics,
        detail=running.said,
    )


def test_a_topic_is_taken_in_by_rest_and_left_by_apply(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    one, two = f"{topic_name}-one", f"{topic_name}-two"
    for topic in (one, two):
        create(source_cluster, topic, 2)
        fill(source_cluster, topic, RECORDS, 2)
    ends = source_cluster, target_cluster
    file = one_flow.write(tmp_path / "shop.yaml", one_flow.name_of(topic_name), ends, one)
    assert anabranch("apply", file, "--yes").code == 0

    def copied(topic: str) -> int:
        """Return how many records a copy has that is its original; 0 for any other."""
        if f"east.{topic}" not in names(target_cluster):
            return 0
        pair = declared("east", source_cluster), topic, declared("west", target_cluster), f"east.{topic}"
        found = compare(*pair, "read_committed")
        return found.records if found.is_identical else 0

    running = Replicator(file, tmp_path / "run")
    try:
        eventually("the first topic is copied", lambda: copied(one) == RECORDS, detail=running.said)
        with serving(file, "--operate") as service:
            url = f"{ready(service).url}/connectors/east-west"
            body = json.dumps({"topics": f"{one},{two}"}).encode()
            status, said = answer(f"{url}/config", "PATCH", body, {"Content-Type": "application/json"})
            assert status == 200, said
            eventually("the second one is, too", lambda: copied(two) == RECORDS, detail=running.said)
            wait_for_topics(url, [f"east.{one}", f"east.{two}"], running)
            drifted = json.loads(anabranch("drift", file, "-o", "json").stdout)["drift"]
            assert [(one["field"], one["found"]) for one in drifted] == [("topics.include", two)]
            assert anabranch("apply", file, "--yes").code == 0
            assert json.loads(anabranch("drift", file, "-o", "json").stdout)["clean"]
            # What comes before its tasks have the file's topics is still copied.
            wait_for_topics(url, [f"east.{one}"], running)
        fill(source_cluster, two, RECORDS, 2)
        fill(source_cluster, one, RECORDS, 2)
        eventually("the first one goes on", lambda: copied(one) == 2 * RECORDS, detail=running.said)
        assert copied(two) == 0, "its original has more by now"
        running.terminate()
        assert running.wait(STOP_SECONDS) == 0
    finally:
        running.end()
