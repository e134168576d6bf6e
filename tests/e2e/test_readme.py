"""What pages have users type, typed: a file, commands in their order and a program, on real clusters."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from reconciler.declare.rewrite import with_bootstraps
from reconciler.demo.compare import compare
from reconciler.embedded import EmbeddedCluster
from tests.conftest import MakeClusters
from tests.support.clusters.kafka import create, declared
from tests.support.clusters.traffic import Traffic

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BY_HAND = (ROOT / "docs" / "first-topology.md").read_text(encoding="utf-8")
RUNNING = (ROOT / "docs" / "running.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent
LIMIT_SECONDS = 600
# What the program shows of records that came in after the first 500: partition, offsets, records, latency.
ROW = re.compile(r"us-east\.users\| +[012]\| +16[67]\| +\d+\| +\d+\| +\d+\|")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def test_commands_and_a_program_do_what_their_pages_say(make_clusters: MakeClusters, tmp_path: Path) -> None:
    east, west = make_clusters("us-east", "eu-west")
    (declaration,) = blocks(BY_HAND, "yaml")
    addresses = {"us-east": east.bootstrap, "eu-west": west.bootstrap}
    (tmp_path / "payments.yaml").write_text(with_bootstraps(declaration, addresses))
    for cluster in (east, west):
        for topic in ("orders", "users", "orders-tmp"):
            create(cluster, topic, 3)
            traffic = Traffic(cluster, topic, 3, records=500, backlog=500)
            traffic.start()
            traffic.finish()
    said: dict[str, str] = {}
    (commands,) = blocks(BY_HAND, "sh")
    for line in commands.splitlines():
        name, *arguments = shlex.split(line)
        ended = subprocess.run(
            [str(BIN / name), *arguments],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        assert ended.returncode == 0, (line, ended.stdout, ended.stderr)
        said[line.removeprefix("anabranch ")] = ended.stdout

    assert "2 clusters, 2 flows" in said["validate payments.yaml"]
    assert said["graph payments.yaml --format mermaid"].startswith("flowchart")
    assert "us-east.orders " in said["plan payments.yaml --out plan.json"]
    assert "orders-tmp" not in said["plan payments.yaml --out plan.json"]
    assert "us-east → eu-west" in said["status payments.yaml"]
    assert "no difference: 2,000 records are the same" in said["verify payments.yaml"]
    moved = said["failover payments.yaml --flow us-east-eu-west --dry-run"]
    assert "consumers and producers move from us-east to eu-west" in moved
    clusters = {"us-east": declared("us-east", east), "eu-west": declared("eu-west", west)}
    for source, target in (("us-east", "eu-west"), ("eu-west", "us-east")):
        for topic in ("orders", "users"):
            found = compare(clusters[source], topic, clusters[target], f"{source}.{topic}")
            assert found.is_identical, found
            assert found.records == 500
    _run_its_program(tmp_path, east, west)


def _run_its_program(folder: Path, east: EmbeddedCluster, west: EmbeddedCluster) -> None:
    """Run the PySpark program until it has shown the copying of records that come in meanwhile."""
    (program,) = blocks(RUNNING, "python")
    (folder / "program.py").write_text(program)
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    traffic = Traffic(east, "users", 3, records=300, backlog=300)
    traffic.start()
    traffic.finish()
    log = folder / "program.log"
    command = [sys.executable, "program.py"]
    with log.open("wb") as said:
        running = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
    try:
        deadline = time.monotonic() + LIMIT_SECONDS
        # A row is shown, and all is copied, though a row may be missing where an answer was.
        while not (ROW.search(log.read_text()) and _is_copied(east, west, 800)):
            assert running.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)
    finally:
        for process in psutil.Process(running.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        running.kill()
        running.wait()


def _is_copied(east: EmbeddedCluster, west: EmbeddedCluster, records: int) -> bool:
    found = compare(declared("us-east", east), "users", declared("eu-west", west), "us-east.users")
    return found.is_identical and found.records == records


def test_the_make_targets_and_links_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^make ([a-z-]+)$", README, re.MULTILINE)
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    links = re.findall(r"\]\((?!http)([^)]+)\)", README)
    assert links
    for link in links:
        assert (ROOT / link.partition("#")[0]).exists(), link
