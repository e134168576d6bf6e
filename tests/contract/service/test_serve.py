"""`anabranch serve` with a real broker: two at once, killed, steering a real task, over TLS, fuzzed by its document."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.embedded.certificates import Authority
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState
from tests.support.clusters.kafka import create
from tests.support.commands.command import anabranch
from tests.support.commands.serving import answer, ready, serving
from tests.support.replicator.copying import REMOTE, Running, all_running, fill, spec_of
from tests.support.replicator.reporting import HOSTILE, Reporting, declared
from tests.support.waiting import eventually

TOKEN = "0123456789abcdef-of-tests"


def of_running(folder: Path, source: Cluster, target: Cluster) -> Path:
    """Write the file of the flow that `Running` copies."""
    path = folder / "tests.yaml"
    path.write_text(
        json.dumps(
            {
                "version": 1,
                "name": "tests",
                "clusters": {one.alias: {"bootstrap": list(one.bootstrap)} for one in (source, target)},
                "flows": [{"from": source.alias, "to": target.alias}],
            }
        ),
        encoding="utf-8",
    )
    return path


def prepared(
    folder: Path,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    names: tuple[Cluster, Cluster],
    topic: str,
) -> tuple[FlowSpec, Path]:
    """Make a topic of two partitions with records, its copy, and the file of the flow that `Running` copies."""
    create(source_cluster, topic, 2)
    create(target_cluster, f"east.{topic}", 2, REMOTE)
    fill(source_cluster, topic, 100, 2)
    return spec_of(*names, topic), of_running(folder, *names)


def test_two_services_agree_with_status_and_one_is_killed(
    tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    file = declared(tmp_path, target_cluster, f"shop-{topic_name[-8:]}")
    with Reporting(file), serving(file, ends=-9) as one, serving(file) as two:
        found = [ready(service).get("/api/v1/status")["flows"] for service in (one, two)]
        found.append(json.loads(anabranch("status", file, "--clusters", "west", "-o", "json").stdout)["flows"])
        for flows in found:
            flows[0].pop("silentSeconds")
            flows[0]["groups"].pop("silentSeconds")
        assert found[0] == found[1] == found[2]
        assert [part["topic"] for part in found[0][0]["partitions"]].count(HOSTILE) == 1
        load = [threading.Thread(target=lambda: [two.get("/api/v1/lag") for _ in range(50)]) for _ in range(4)]
        for thread in load:
            thread.start()
        one.process.kill()
        for thread in load:
            thread.join()
        assert two.get("/api/v1/flows")["flows"][0]["tasks"] == 1


def test_a_real_task_is_paused_and_goes_on_and_does_not_notice_a_kill(
    tmp_path: Path,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    source: Cluster,
    target: Cluster,
    topic_name: str,
) -> None:
    spec, file = prepared(tmp_path, source_cluster, target_cluster, (source, target), topic_name)
    audit = tmp_path / "audit"
    with Running(spec) as copying, serving(file, "--operate", "--audit-log", str(audit), ends=-9) as service:
        copying.wait(lambda status: all_running(status.partitions))
        ready(service)
        path = f"{service.url}/api/v1/flows/{spec.flow.name}"
        status, body = answer(
            f"{path}/pause",
            "POST",
            json.dumps({"topics": [f"{topic_name}/1"]}).encode(),
            {"Content-Type": "application/json"},
        )
        assert (status, json.loads(body)["flows"][0]["unconfirmed"]) == (200, 0)
        states = {one.partition: one.state for one in copying.wait(lambda _: True).partitions}
        assert states == {0: PartitionState.RUNNING, 1: PartitionState.PAUSED}
        assert answer(f"{path}/resume", "POST")[0] == 200
        for rooms, status in (("x" * 300, 404), ("state\0", 404), ("../model", 404), ("state,wire.net", 200)):
            body_of = json.dumps({"rooms": rooms}).encode()
            kind = {"Content-Type": "application/json"}
            assert answer(f"{service.url}/api/v1/log-level", "PUT", body_of, kind)[0] == status
        copying.wait(lambda status: all_running(status.partitions))
        said = [
            (one["caller"], one["action"], one["result"])
            for one in map(json.loads, audit.read_text().splitlines())
            if one["action"] != "log-level"
        ]
        assert said == [("local", action, result) for action in ("pause", "resume") for result in ("begins", "done")]
        before = copying.wait().records
        service.process.kill()
        fill(source_cluster, topic_name, 100, 2)
        copying.wait(lambda status: status.records >= before + 100)


def test_over_tls_a_token_is_needed(tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str) -> None:
    file = declared(tmp_path, target_cluster, f"shop-{topic_name[-8:]}")
    authority = Authority("tests")
    certificate, key = authority.issue("localhost", ["localhost"]).write(tmp_path, "own")
    (tmp_path / "ca.pem").write_text(authority.pem)
    tls = ["--tls-certificate", str(certificate), "--tls-key", str(key)]
    with serving(file, *tls, "--token", "read=env:TOKEN", env={"TOKEN": TOKEN}) as service:
        assert service.url.startswith("https://127.0.0.1:")
        trust = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
        url = service.url.replace("127.0.0.1", "localhost")
        assert answer(f"{url}/clusters", context=trust)[0] == 401
        status, body = answer(f"{url}/clusters", headers={"Authorization": f"Bearer {TOKEN}"}, context=trust)
        assert (status, json.loads(body)) == (200, ["east", "west", "gone"])
    # A key that is none of this certificate.
    key.write_text(authority.issue("localhost").key)
    wrong = anabranch("serve", file, "--listen", "127.0.0.1:0", *tls)
    assert (wrong.code, "AB739" in wrong.stderr) == (1, True)


def test_arguments_that_expose_it_are_refused(tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str) -> None:
    file = declared(tmp_path, target_cluster, f"shop-{topic_name[-8:]}")
    ended = anabranch("serve", file, "--listen", "0.0.0.0:0", "--operate")
    assert (ended.code, "AB739" in ended.stderr) == (1, True)
    assert anabranch("serve", file, "--tls-key", "key.pem").code == 2
    assert anabranch("serve", file, "--token", TOKEN).code == 1
    ended = anabranch("serve", file, "--token", TOKEN)
    assert TOKEN not in ended.stderr + ended.stdout


def test_events_are_streamed(tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str) -> None:
    file = declared(tmp_path, target_cluster, f"shop-{topic_name[-8:]}")
    with serving(file) as service, urllib.request.urlopen(f"{service.url}/api/v1/events", timeout=300) as stream:
        kinds: list[str] = []
        with Reporting(file):
            for line in stream:
                kinds += [line.decode().strip()] if line.startswith(b"event:") else []
                data = json.loads(line[6:]) if line.startswith(b"data: ") else {}
                if data.get("flows") and data["flows"][0]["state"] == "degraded":
                    break
        assert {"event: flows", "event: change"} <= set(kinds)


@pytest.mark.long
def test_schemathesis_finds_nothing(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    """Its default checks over the document, with names that are there; the stream of events never ends."""
    file = declared(tmp_path, target_cluster, f"shop-{topic_name[-8:]}")
    # What is not named there must be away in no other test; here all clusters answer.
    text = file.read_text(encoding="utf-8").replace('127.0.0.1:9"', f'{source_cluster.bootstrap}"')
    file.write_text(text.replace("127.0.0.1:19", target_cluster.bootstrap), encoding="utf-8")
    (tmp_path / "schemathesis.toml").write_text(
        '[parameters]\nflow = "east-west"\ncluster = "west"\nsource = "east"\ntarget = "west"\n'
        'connector = "MirrorSourceConnector"\n'
        # Which settings there are, and their values, no schema of JSON has: what is none is refused.
        '[[operations]]\ninclude-path-regex = "/connectors/[^/]+/config$"\ninclude-method = "PUT"\n'
        "checks.positive_data_acceptance.enabled = false\n",
        encoding="utf-8",
    )
    # A task that lives would have to confirm each of hundreds of pauses.
    with Reporting(file):
        pass
    with serving(file, "--operate") as service:
        ready(service)
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/docs/openapi.json"]
        command += ["--max-examples", "5", "--seed", "1", "--request-timeout", "120", "--no-color"]
        command += ["--exclude-path", "/api/v1/events", "--suppress-health-check", "all"]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=1_000)
        assert ended.returncode == 0, ended.stdout[-6_000:] + ended.stderr[-2_000:]
        assert service.get("/livez") == {"status": "ok"}


def test_what_it_says_of_a_run_that_ended(tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str) -> None:
    file = declared(tmp_path, target_cluster, f"shop-{topic_name[-8:]}")
    with serving(file) as service:
        with Reporting(file):
            eventually("it runs", lambda: _state(service.url), lambda state: state == "degraded")
        eventually("it is lost", lambda: _state(service.url), lambda state: state == "lost")
        began = time.time()
        assert service.get("/api/v1/flows/east-west/readiness")["ready"] is False
        route = "/from:east/to:west/connectors/MirrorSourceConnector/status"
        assert service.get(route)["connector"]["state"] == "FAILED"
        assert time.time() - began < 60


def _state(url: str) -> str:
    status, body = answer(f"{url}/api/v1/flows/east-west")
    return str(json.loads(body)["state"]) if status == 200 else ""
