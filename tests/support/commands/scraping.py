"""`anabranch metrics` as a process of its own, and a real Prometheus that scrapes it."""

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

from release.monitoring import FOLDER, RULES
from tests.support.commands.command import COMMAND


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
            assert process.wait(300) == 0


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


def firing(url: str) -> set[str]:
    """Return the names of the alerts that fire now."""
    return {one["metric"]["alertname"] for one in queried(url, "ALERTS{alertstate='firing'}")}
