"""`anabranch metrics` on a real broker, scraped by a real Prometheus that evaluates the committed alert rules."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from reconciler.embedded import EmbeddedCluster
from release.monitoring import FOLDER, RULES
from tests.support.commands.command import COMMAND, anabranch
from tests.support.replicator.reporting import Reporting, declared
from tests.support.waiting import eventually


@contextmanager
def exporter(file: Path) -> Iterator[str]:
    """Run `anabranch metrics` and yield the URL that it prints."""
    command = [*COMMAND, "metrics", str(file), "--listen", "127.0.0.1:0", "--log-format", "json"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            message = next(text for line in process.stderr if "metrics at" in (text := json.loads(line)["message"]))
            yield message.removeprefix("metrics at ")
        finally:
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
            assert process.wait(60) == 0


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return str(answer.read().decode())


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[str]:
    """Run a Prometheus that scrapes `target` and evaluates the committed rules without waiting; yield its URL."""
    binary = shutil.which("prometheus")
    if binary is None:
        pytest.skip("no prometheus on PATH: it is in the Debian package of that name")
    rules = folder / "rules.yaml"
    lines = (FOLDER / RULES).read_text(encoding="utf-8").splitlines()
    rules.write_text(
        "\n".join("    for: 0s" if one.startswith("    for: ") else one for one in lines), encoding="utf-8"
    )
    configuration = folder / "prometheus.yaml"
    configuration.write_text(
        json.dumps(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(rules)],
                "scrape_configs": [{"job_name": "anabranch", "static_configs": [{"targets": [target]}]}],
            }
        ),
        encoding="utf-8",
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [binary, f"--config.file={configuration}", f"--storage.tsdb.path={folder / 'data'}"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env={**os.environ, "GOMAXPROCS": "1"}) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def queried(url: str, query: str) -> list[dict[str, Any]]:
    try:
        found = json.loads(fetched(f"{url}/api/v1/query?query={quote(query)}"))
    except OSError:
        # It is not listening yet.
        return []
    return list(found["data"]["result"])


def value(url: str, query: str) -> float | None:
    found = queried(url, query)
    return float(found[0]["value"][1]) if len(found) == 1 else None


def test_a_real_prometheus_scrapes_every_state_and_its_alert_fires(
    tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    file = declared(tmp_path, target_cluster, f"shop-{topic_name[-8:]}")
    with Reporting(file), exporter(file) as url, prometheus(tmp_path, url.split("/")[2]) as server:
        eventually("a scrape", lambda: value(server, "anabranch_flow_up{flow='east-west'}"), lambda one: one == 1)
        shown = json.loads(anabranch("status", file, "--clusters", "west", "--format", "json").stdout)
        (flow,) = shown["flows"]
        for name, metric in (("lag", "anabranch_flow_lag_records"), ("lagSeconds", "anabranch_flow_lag_seconds")):
            assert value(server, metric) == flow[name]
        for one in flow["partitions"]:
            place = f"topic={json.dumps(one['topic'], ensure_ascii=False)},partition='{one['partition']}'"
            assert value(server, f"anabranch_partition_lag_records{{{place}}}") == one["lag"]
            latency = value(server, f"anabranch_partition_latency_seconds{{{place},stat='p99'}}")
            assert latency == pytest.approx(one["latencyMs"]["p99"] / 1_000)
        assert value(
            server, "kafka_connect_mirror_mirrorsourceconnector_record_count{topic='east.orders',partition='0'}"
        )
        assert value(server, "kafka_connect_plugins_record_count{topic='east.orders',partition='0',task='0'}") == 1_000
        fired = {"AnabranchParked", "AnabranchLag", "AnabranchStalled", "AnabranchClusterAway", "AnabranchGroupStale"}
        eventually(
            "the alerts of a parked partition, lag, a stall, a cluster that is away and a stale group",
            lambda: {one["metric"]["alertname"] for one in queried(server, "ALERTS{alertstate='firing'}")},
            lambda found: found == fired,
        )


def test_a_run_that_is_killed_is_down_and_its_alert_fires(
    tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    file = declared(tmp_path, target_cluster, f"shop-{topic_name[-8:]}")
    with exporter(file) as url, prometheus(tmp_path, url.split("/")[2]) as server:
        with Reporting(file):
            eventually("it is up", lambda: value(server, "anabranch_flow_up{flow='east-west'}"), lambda one: one == 1)
        # It ends without a last report, as a process that is killed.
        eventually("it is lost", lambda: value(server, "anabranch_flow_state{flow='east-west',state='lost'}"))
        assert value(server, "anabranch_flow_lag_seconds{flow='east-west'}") is None
        eventually(
            "its alert",
            lambda: {one["metric"]["alertname"] for one in queried(server, "ALERTS{alertstate='firing'}")},
            lambda found: "AnabranchFlowDown" in found,
        )


def test_once_prints_what_is_known_and_ends_with_6_where_a_cluster_is_away(
    tmp_path: Path, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    file = declared(tmp_path, target_cluster, f"shop-{topic_name[-8:]}")
    with Reporting(file):
        ended = anabranch("metrics", file, "--once")
    assert (ended.code, ended.stdout.endswith("# EOF\n")) == (6, True)
    assert f'anabranch_cluster_up{{topology="shop-{topic_name[-8:]}",cluster="gone"}} 0\n' in ended.stdout
    assert "AB310" in ended.stderr
    # A name of a topic is the value of a label, and nothing else.
    assert '\\n<img src=x onerror=alert(1)>"' in ended.stdout
    assert not any(line.startswith("<img") for line in ended.stdout.splitlines())
    assert anabranch("metrics", file, "--listen", "8080").code == 2
    assert anabranch("metrics", file, "--mirror-maker-names", "old").code == 2
