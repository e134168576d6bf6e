"""Workers of a Connect cluster: the lines of curl that guides print, and the results that they promise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reconciler.demo.compare import compare
from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create, declared, delete, names
from tests.support.commands.command import anabranch
from tests.support.commands.connecting import connecting
from tests.support.commands.recordings import Recorded, is_of_the_moment, recorded, wrong_with
from tests.support.commands.serving import answer
from tests.support.commands.trees import kill_tree
from tests.support.converting import emr
from tests.support.replicator.copying import fill
from tests.support.waiting import eventually

pytestmark = pytest.mark.spark

RECORDS = 300
# Connectors of the recorded requests that copy topics of their own.
_OTHERS = ("typed", "kip382", "mm2-source-connector", "sink", "stopped")


def copied(source: EmbeddedCluster, topic: str, target: EmbeddedCluster, remote: str, records: int) -> None:
    """Wait until a copy is complete, and assert that it is its original."""

    def looked() -> tuple[bool, int]:
        if remote not in names(target):
            return False, 0
        found = compare(declared("a", source), topic, declared("b", target), remote, "read_committed")
        return found.is_identical, found.records

    eventually(f"{remote} has all records", looked, lambda found: found == (True, records))


def test_three_connectors_of_a_guide_are_put_one_after_the_other(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    topic, group = f"foo-{topic_name}", topic_name[-30:].strip("-")
    create(source_cluster, topic, 2)
    fill(source_cluster, topic, RECORDS, 2)
    paths = emr(tmp_path, source_cluster.bootstrap, f"{target_cluster.bootstrap};{target_cluster.bootstrap}", 1)
    configs = {path.stem: json.loads(path.read_text()) for path in paths}
    source = configs["mm2-source-connector"]
    # Topics of other tests begin with foo, too.
    source["topics"] = f"^foo-{topic_name}.*"
    with connecting(tmp_path / "one", target_cluster.bootstrap, group) as worker:
        assert set(worker.get("/")) == {"version", "commit", "kafka_cluster_id"}
        for name, config in configs.items():
            assert worker.ask("PUT", f"/connectors/{name}/config", config)[0] == 201
        for name in configs:
            worker.wait_until(name, "RUNNING")
        copied(source_cluster, topic, target_cluster, f"emrsource.{topic}", RECORDS)
        there = names(target_cluster)
        assert {"emrsource.checkpoints.internal", "heartbeats"} <= there
        assert worker.get("/connectors/mm2-source-connector/topics") == {
            "mm2-source-connector": {"topics": [f"emrsource.{topic}"]}
        }
        # Of the last records, and not of the next ones.
        eventually(
            "the offsets are there",
            lambda: worker.get("/connectors/mm2-source-connector/offsets")["offsets"],
            lambda found: (
                sorted((one["partition"]["partition"], one["offset"]["offset"]) for one in found)
                == [(0, RECORDS // 2 - 1), (1, RECORDS // 2 - 1)]
            ),
        )

        # What is paused copies nothing, and goes on where it was.
        assert worker.ask("PUT", "/connectors/mm2-source-connector/pause")[0] == 202
        worker.wait_until("mm2-source-connector", "PAUSED")
        fill(source_cluster, topic, RECORDS, 2)
        assert worker.ask("PUT", "/connectors/mm2-source-connector/resume")[0] == 202
        copied(source_cluster, topic, target_cluster, f"emrsource.{topic}", 2 * RECORDS)

        # A second worker has the same connectors, and goes on when the first is killed.
        with connecting(tmp_path / "two", target_cluster.bootstrap, group) as other:
            assert sorted(other.get("/connectors")) == sorted(configs)
            kill_tree(worker.process.pid)
            worker.process.wait()
            fill(source_cluster, topic, RECORDS, 2)
            copied(source_cluster, topic, target_cluster, f"emrsource.{topic}", 3 * RECORDS)

            # What is stopped is declared so; what is taken out is declared no longer.
            assert other.ask("PUT", "/connectors/mm2-source-connector/stop")[0] == 204
            other.wait_until("mm2-source-connector", "STOPPED")
            for name in configs:
                assert other.ask("DELETE", f"/connectors/{name}")[0] == 204
            assert other.get("/connectors") == []
    assert names(target_cluster) >= {f"emrsource.{topic}"}


@pytest.mark.long
def test_the_walk_through_of_kip_382_and_a_change_while_it_runs(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    first, second = f"{topic_name}-a", f"{topic_name}-b"
    group = topic_name[-30:].strip("-")
    for topic in (first, second):
        create(source_cluster, topic, 2)
        fill(source_cluster, topic, RECORDS, 2)
    # As the KIP prints it: with `brokers.list`, and without brokers of the target, which are the worker's.
    config = {
        "name": "us-west-source",
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "us-west",
        "target.cluster.alias": "us-east",
        "source.cluster.brokers.list": source_cluster.bootstrap,
        "topics": first,
    }
    with connecting(tmp_path / "one", target_cluster.bootstrap, group) as worker:
        assert worker.ask("PUT", "/connectors/us-west-source/config", config)[0] == 201
        copied(source_cluster, first, target_cluster, f"us-west.{first}", RECORDS)
        status, changed = worker.ask("PATCH", "/connectors/us-west-source/config", {"topics": f"{first},{second}"})
        assert (status, changed["config"]["topics"]) == (200, f"{first},{second}")
        copied(source_cluster, second, target_cluster, f"us-west.{second}", RECORDS)
        copied(source_cluster, first, target_cluster, f"us-west.{first}", RECORDS)
        assert worker.ask("PUT", "/connectors/us-west-source/restart")[0] == 204
        # The file that the worker keeps is one for other commands.
        kept = tmp_path / "one" / "state" / "anabranch" / "converted" / f"{group}.yaml"
        assert anabranch("plan", kept, "--detailed-exitcode").code == 0
    # Begun again, it has its connectors, and copies nothing again.
    with connecting(tmp_path / "one", target_cluster.bootstrap, group) as worker:
        worker.wait_until("us-west-source", "RUNNING")
        fill(source_cluster, first, RECORDS, 2)
        copied(source_cluster, first, target_cluster, f"us-west.{first}", 2 * RECORDS)


@pytest.mark.long
def test_each_recorded_request_is_answered_alike_while_it_copies(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    before = names(source_cluster), names(target_cluster)
    create(source_cluster, "test", 3)
    fill(source_cluster, "test", RECORDS, 3)
    for name in _OTHERS:
        create(source_cluster, f"topics-of-{name}")
        fill(source_cluster, f"topics-of-{name}", RECORDS)
    requests = recorded(source_cluster.bootstrap, target_cluster.bootstrap)
    wrong = []
    with connecting(tmp_path / "one", target_cluster.bootstrap, topic_name[-30:].strip("-")) as worker:
        for one in requests:
            if is_of_the_moment(one):
                continue

            def look(one: Recorded = one) -> str:
                return wrong_with(one, *answer(f"{worker.url}{one.path}", one.method, one.body, one.headers))

            waits = one.state or one.needs_tasks
            if found := eventually(str(one), look, lambda found: not found) if waits else look():
                wrong.append(found)
    assert not wrong, "\n".join(wrong)
    # The recordings name the topics: the next test that asks the same of these clusters must find no copies of another.
    for cluster, former in zip((source_cluster, target_cluster), before, strict=True):
        delete(cluster, *(name for name in names(cluster) - former if not name.endswith(".internal")))
