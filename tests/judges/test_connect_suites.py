"""Kafka Connect's own scenarios as far as they concern mirror connectors, by name, on workers of ours that copy.

`OffsetsApiIntegrationTest`, `ConnectorRestartApiIntegrationTest` and `ConnectWorkerIntegrationTest` of Kafka 4.3. Where
an answer differs by design the test asserts ours, and README.md has the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from reconciler.embedded import EmbeddedCluster, start_all, stop_all
from tests.judges.mirroring import EACH, PARTITIONS, produce, topic_of
from tests.support.clusters.kafka import declared
from tests.support.commands.connecting import Worker, connecting
from tests.support.replicator.copying import log_end
from tests.support.waiting import eventually

pytestmark = [pytest.mark.spark, pytest.mark.long]

NAME, TOPIC = "mirror-source", "test-topic-1"
GROUP = "judged-workers"
UNKNOWN = "/connectors/non-existent-connector"


class Scene(NamedTuple):
    """A worker with one connector that copies."""

    worker: Worker
    primary: EmbeddedCluster
    backup: EmbeddedCluster
    config: dict[str, str]

    def ask(self, method: str, path: str, body: Any = None) -> int:
        return self.worker.ask(method, path, body)[0]

    def offsets(self) -> dict[int, int]:
        """Return the last offset that was copied, by partition."""
        found = self.worker.get(f"/connectors/{NAME}/offsets")["offsets"]
        return {one["partition"]["partition"]: one["offset"]["offset"] for one in found}

    def runs(self) -> None:
        self.worker.wait_until(NAME, "RUNNING")

    def goes_on(self) -> None:
        """Write more, and see all of it copied; what tasks report while they begin says nothing of partitions."""
        produce(self.primary, TOPIC)
        cluster = declared("primary", self.primary)
        last = {number: log_end(cluster, TOPIC, number) - 1 for number in range(PARTITIONS)}
        eventually("it goes on", self.offsets, lambda found: found == last)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    clusters = EmbeddedCluster("primary"), EmbeddedCluster("backup")
    start_all(clusters)
    primary, backup = clusters
    try:
        produce(primary, topic_of(primary, TOPIC))
        config = {
            "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
            "tasks.max": "2",
            "source.cluster.alias": "primary",
            "target.cluster.alias": "backup",
            "source.cluster.bootstrap.servers": primary.bootstrap,
            "topics": "test-topic-.*",
            "refresh.topics.interval.seconds": "1",
        }
        with connecting(tmp_path_factory.mktemp("worker"), backup.bootstrap, GROUP) as worker:
            made = Scene(worker, primary, backup, config)
            assert made.ask("PUT", f"/connectors/{NAME}/config", config) == 201
            made.runs()
            yield made
    finally:
        stop_all(clusters)


# --- OffsetsApiIntegrationTest ---------------------------------------------------------------------------------------


def test_get_non_existent_connector_offsets(scene: Scene) -> None:
    """`testGetNonExistentConnectorOffsets`."""
    assert scene.ask("GET", f"{UNKNOWN}/offsets") == 404


def test_get_source_connector_offsets(scene: Scene) -> None:
    """`testGetSourceConnectorOffsets`: what was copied, and more when more was."""

    def has(number: int) -> Callable[[dict[int, int]], bool]:
        return lambda found: found == dict.fromkeys(range(PARTITIONS), EACH * number - 1)

    eventually("offsets are those of the last records", scene.offsets, has(1))
    produce(scene.primary, TOPIC)
    eventually("offsets are those of the last records", scene.offsets, has(2))


def test_alter_offsets_non_existent_connector(scene: Scene) -> None:
    """`testAlterOffsetsNonExistentConnector` and `testResetOffsetsNonExistentConnector`."""
    body: dict[str, Any] = {"offsets": [{"partition": {}, "offset": {}}]}
    assert scene.ask("PATCH", f"{UNKNOWN}/offsets", body) == 404
    assert scene.ask("DELETE", f"{UNKNOWN}/offsets") == 404


@pytest.mark.parametrize("state", ["RUNNING", "PAUSED", "STOPPED"])
def test_alter_offsets(state: str, scene: Scene) -> None:
    """`testAlterOffsetsNonStoppedConnector`, and `testAlterSourceConnectorOffsets`, which is refused here."""
    place = {"cluster": "primary", "topic": TOPIC, "partition": 0}
    body = {"offsets": [{"partition": place, "offset": {"offset": 5}}]}
    if state != "RUNNING":
        assert scene.ask("PUT", f"/connectors/{NAME}/{'pause' if state == 'PAUSED' else 'stop'}") in (202, 204)
    scene.worker.wait_until(NAME, state)
    before = scene.offsets()
    assert scene.ask("PATCH", f"/connectors/{NAME}/offsets", body) == 400
    assert scene.ask("DELETE", f"/connectors/{NAME}/offsets") == 400
    assert scene.offsets() == before
    assert scene.ask("PUT", f"/connectors/{NAME}/resume") == 202
    scene.runs()


# --- ConnectorRestartApiIntegrationTest ------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["", *(f"?onlyFailed={a}&includeTasks={b}" for a in "01" for b in "01")])
def test_restart_unknown_connector(query: str, scene: Scene) -> None:
    """`testRestartUnknownConnectorNoParams` and `testRestartUnknownConnector`."""
    query = query.replace("=0", "=false").replace("=1", "=true")
    assert scene.ask("POST", f"{UNKNOWN}/restart{query}") == 404


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("", 204),
        ("?includeTasks=true", 202),
        ("?onlyFailed=true", 202),
        ("?onlyFailed=true&includeTasks=true", 202),
    ],
)
def test_running_connector_and_tasks_restart(query: str, status: int, scene: Scene) -> None:
    """`testRunningConnectorAndTasksRestart…`: it runs on, and goes on where it was."""
    assert scene.ask("POST", f"/connectors/{NAME}/restart{query}") == status
    scene.runs()
    scene.goes_on()


# --- ConnectWorkerIntegrationTest ------------------------------------------------------------------------------------


def test_add_and_remove_worker(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> None:
    """`testAddAndRemoveWorker`: a second worker has the same connectors, and its end harms none."""
    with connecting(tmp_path_factory.mktemp("other"), scene.backup.bootstrap, GROUP) as other:
        eventually("it has the connector", lambda: other.get("/connectors"), lambda found: found == [NAME])
        other.wait_until(NAME, "RUNNING")
    scene.runs()


def test_restart_failed_task(scene: Scene) -> None:
    """`testRestartFailedTask`: a connector with a wrong address fails, and runs when it has the right one."""
    wrong = scene.config | {"source.cluster.alias": "other", "source.cluster.bootstrap.servers": "127.0.0.1:1"}
    assert scene.ask("PUT", "/connectors/failing/config", wrong) == 201
    eventually("it fails", lambda: scene.worker.state("failing"), lambda state: state == "FAILED")
    right = wrong | {"source.cluster.bootstrap.servers": scene.primary.bootstrap}
    assert scene.ask("PUT", "/connectors/failing/config", right) == 200
    assert scene.ask("POST", "/connectors/failing/restart?includeTasks=true") in (202, 204, 409)
    scene.worker.wait_until("failing", "RUNNING")
    assert scene.ask("DELETE", "/connectors/failing") == 204
    scene.runs()


def test_broker_coordinator(scene: Scene) -> None:
    """`testBrokerCoordinator`: the workers' cluster goes away and comes back, and the connector runs again."""
    (node,) = scene.backup.running_nodes
    scene.backup.stop_broker(node)
    scene.backup.start_broker(node)
    scene.runs()
    scene.goes_on()


def test_pause_stop_resume(scene: Scene) -> None:
    """`testPauseStopResume`: paused connectors keep their tasks, stopped ones have none."""
    for action, state in (("pause", "PAUSED"), ("stop", "STOPPED"), ("pause", "PAUSED"), ("resume", "RUNNING")):
        assert scene.ask("PUT", f"/connectors/{NAME}/{action}") in (202, 204)
        scene.worker.wait_until(NAME, state)
        tasks = scene.worker.get(f"/connectors/{NAME}/status")["tasks"]
        assert bool(tasks) == (state != "STOPPED")


@pytest.mark.parametrize("state", ["STOPPED", "PAUSED"])
def test_create_connector_with_initial_state(state: str, scene: Scene) -> None:
    """`testCreateConnectorWithStoppedInitialState` and `…PausedInitialState`: it begins so, and can be deleted."""
    config = scene.config | {"source.cluster.alias": "initial", "name": "initial"}
    body = {"name": "initial", "config": config, "initial_state": state}
    assert scene.ask("POST", "/connectors", body) == 201
    eventually("it is so", lambda: scene.worker.state("initial"), lambda found: found == state)
    assert scene.ask("DELETE", "/connectors/initial") == 204
    eventually("it is gone", lambda: scene.ask("GET", "/connectors/initial"), lambda status: status == 404)


def test_patch_connector_config(scene: Scene) -> None:
    """`testPatchConnectorConfig`: fields are added, changed, and taken out by null."""
    status, found = scene.worker.ask(
        "PATCH", f"/connectors/{NAME}/config", {"tasks.max": "3", "refresh.topics.interval.seconds": None}
    )
    assert status == 200
    assert found["config"]["tasks.max"] == "3"
    assert "refresh.topics.interval.seconds" not in found["config"]
    scene.runs()
