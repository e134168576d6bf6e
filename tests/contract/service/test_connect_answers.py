"""A worker's REST interface beside a real Kafka Connect 4.3: the same requests, statuses and shapes."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from reconciler.convert.conversion import cluster_of_worker
from reconciler.convert.settings import Setting, Settings
from reconciler.embedded import EmbeddedCluster
from reconciler.metrics.server import ListenAddress
from reconciler.model.recorded.connector import ConnectorRecord
from reconciler.operate.reporter import SILENT
from reconciler.service.access import Caller, Tokens
from reconciler.service.audit import AuditLog
from reconciler.service.connect.app import answering
from reconciler.service.connect.worker import WorkerHost
from tests.support.clusters.kafka import create
from tests.support.commands.recordings import DIFFERENCES, Recorded, is_of_the_moment, recorded, wrong_with
from tests.support.commands.serving import answer
from tests.support.waiting import eventually


def host_of(folder: Path, cluster: EmbeddedCluster, group: str, audit: AuditLog) -> WorkerHost:
    settings = Settings([Setting("bootstrap.servers", cluster.bootstrap, "worker.properties:1")])
    return WorkerHost(cluster_of_worker(settings), settings, group, folder / "topology.yaml", audit, SILENT)


@pytest.fixture
def worker(tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str) -> Iterator[tuple[str, WorkerHost, Path]]:
    """The address of a worker that copies nothing, the worker, and its audit log."""
    log = tmp_path / "audit.log"
    audit = AuditLog(log)
    host = host_of(tmp_path, target_cluster, topic_name[-30:].strip("-"), audit)
    end = host.begin()
    tokens = Tokens((), Caller("local", "operate"))
    try:
        with answering(host, tokens, audit, ListenAddress("127.0.0.1", 0), None) as url:
            yield url, host, log
    finally:
        end()
        audit.close()


def test_each_recorded_request_is_answered_alike(
    worker: tuple[str, WorkerHost, Path], source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    url, _, log = worker
    requests = recorded(source_cluster.bootstrap, target_cluster.bootstrap)
    wrong = []
    for one in requests:
        if one.needs_tasks or is_of_the_moment(one):
            continue
        if found := asked(url, one):
            wrong.append(found)
    assert not wrong, "\n".join(wrong)
    # What is listed as different is there, each with its reason.
    assert {one.number for one in requests} >= DIFFERENCES.keys()
    assert all(one.why for one in DIFFERENCES.values())
    done = [json.loads(line) for line in log.read_text().splitlines()]
    assert {"configure", "delete", "paused", "running", "stopped"} <= {one["action"] for one in done}


def asked(url: str, one: Recorded) -> str:
    """Return how an answer differs; what comes of a change a moment later is waited for."""

    def look() -> str:
        return wrong_with(one, *answer(f"{url}{one.path}", one.method, one.body, one.headers))

    def detail() -> str:
        # The trace of a connector that has failed says why.
        return str(answer(f"{url}{one.path}", one.method, one.body, one.headers))

    return eventually(str(one), look, lambda found: not found, detail=detail) if one.state else look()


def test_a_secret_in_clear_text_is_refused_and_never_kept(
    worker: tuple[str, WorkerHost, Path], source_cluster: EmbeddedCluster
) -> None:
    url, host, log = worker
    config = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "us-west",
        "source.cluster.bootstrap.servers": source_cluster.bootstrap,
        "source.cluster.security.protocol": "SASL_PLAINTEXT",
        "source.cluster.sasl.mechanism": "PLAIN",
        "source.cluster.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
        'username="mirror" password="swordfish-17";',
        "topics": "orders",
    }
    status, body = put(url, "us-west-source", config)
    assert (status, "AB143" in body, "swordfish" in body) == (400, True, False)
    assert host.records() == {}
    config["source.cluster.sasl.jaas.config"] = str(config["source.cluster.sasl.jaas.config"]).replace(
        "swordfish-17", "${env:MIRROR_PASSWORD}"
    )
    assert put(url, "us-west-source", config)[0] == 201
    assert "swordfish" not in log.read_text()


def test_a_cluster_that_does_not_answer_holds_up_its_own_connector_alone(
    worker: tuple[str, WorkerHost, Path],
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
) -> None:
    url, host, _ = worker
    create(source_cluster, topic_name)
    far = {
        "connector.class": "MirrorSourceConnector",
        "source.cluster.alias": "far",
        "source.cluster.bootstrap.servers": "127.0.0.1:1",
        "topics": topic_name,
    }
    near = far | {"source.cluster.alias": "near", "source.cluster.bootstrap.servers": source_cluster.bootstrap}
    assert put(url, "far", far)[0] == 201
    assert put(url, "near", near)[0] == 201
    eventually("the one that can be is applied", host.is_ready.is_set)
    eventually("the other one has failed", lambda: host.view("far"), lambda found: found and found.state == "FAILED")
    view = host.view("far")
    assert view is not None
    assert "127.0.0.1:1" in view.trace
    assert answer(f"{url}/connectors/far", "DELETE")[0] == 204


def put(url: str, name: str, config: dict[str, str]) -> tuple[int, str]:
    body = json.dumps(config).encode()
    return answer(f"{url}/connectors/{name}/config", "PUT", body, {"Content-Type": "application/json"})


def test_a_fault_of_ours_ends_the_whole_worker(
    tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without what follows the connectors it would take requests, and never carry them out."""
    host = host_of(tmp_path, target_cluster, topic_name[-30:].strip("-"), AuditLog(None))
    # The handlers of this process are others: what ran in it before may have left one that ends it.
    sent: list[int] = []
    monkeypatch.setattr("reconciler.service.connect.worker.interrupt_main", sent.append)
    end = host.begin()

    def broken() -> None:
        message = "a fault of ours"
        raise ValueError(message)

    monkeypatch.setattr(host, "records", broken)
    eventually("the worker ends", host.stopping.is_set)
    with pytest.raises(ValueError, match="a fault of ours"):
        end()
    assert sent == [signal.SIGTERM]


def test_workers_share_their_connectors(tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str) -> None:
    group = topic_name[-30:].strip("-")
    hosts = [host_of(tmp_path, target_cluster, group, AuditLog(None)) for _ in range(2)]
    caller = Caller("ops", "operate")
    threads = []
    for number, host in enumerate(hosts):
        config = {"connector.class": "MirrorHeartbeatConnector", "source.cluster.alias": "a", "name": f"c{number}"}
        record = ConnectorRecord(f"c{number}", config)
        threads.append(threading.Thread(target=host.put, args=(record, caller)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for host in hosts:
        eventually("both are there", partial(_names, host), lambda found: found == {"c0", "c1"})
    hosts[0].remove("c1", caller)
    eventually("one is left", partial(_names, hosts[1]), lambda found: found == {"c0"})
    assert hosts[1].records()["c0"].by.startswith("ops through ")


def _names(host: WorkerHost) -> set[str]:
    return set(host.records())
