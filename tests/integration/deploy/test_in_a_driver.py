"""What the driver of a SparkApplication runs, run by Spark itself, and drained as its pod is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from reconciler.demo.compare import compare
from reconciler.deploy.kubernetes import run
from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create, declared
from tests.support.clusters.traffic import Traffic
from tests.support.commands.command import anabranch
from tests.support.deploying import EAST_AND_WEST
from tests.support.replicator.copying import log_ends
from tests.support.waiting import eventually

pytestmark = [pytest.mark.spark, pytest.mark.long]

RECORDS = 20_000
FILE = (
    EAST_AND_WEST
    + """\
flows:
  - {{from: east, to: west, topics: {{include: ["{name}"]}}, heartbeats: false}}
"""
)


def test_it_copies_beside_the_jvm_of_the_driver_and_ends_in_order(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    name = f"s{topic_name[-8:]}"
    create(source_cluster, name, 2)
    file, program = tmp_path / "shop.yaml", tmp_path / "run.py"
    file.write_text(FILE.format(name=name, east=source_cluster.bootstrap, west=target_cluster.bootstrap))
    program.write_text(Path(run.__file__).read_text())
    assert anabranch("apply", file, "--yes").code == 0
    home = Path(pyspark.__file__).parent
    submit = [str(home / "bin" / "spark-submit"), "--master", "local[1]", "--conf", "spark.ui.enabled=false"]
    command = ["replicate", str(file), "--clusters", "west", "--wait=forever", "--state-dir", str(tmp_path / "state")]
    environ = os.environ | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    west = declared("west", target_cluster)
    with (tmp_path / "driver.log").open("wb") as log:
        # `local:` as in a SparkApplication: by that word the JVM differs from what it runs.
        driver = subprocess.Popen([*submit, f"local://{program}", *command], stdout=log, stderr=log, env=environ)
    traffic = Traffic(source_cluster, name, 2, RECORDS, RECORDS)
    traffic.start()
    try:
        traffic.finish()
        eventually("all is copied", lambda: log_ends(west, f"east.{name}", 2) >= RECORDS)
        drain = [sys.executable, "-m", "reconciler.deploy.kubernetes.drain", "120", str(program)]
        assert subprocess.run(drain, check=False, timeout=300).returncode == 0
        assert driver.wait(300) == 0, (tmp_path / "driver.log").read_text()[-2_000:]
    finally:
        driver.kill()
        driver.wait()
    found = compare(declared("east", source_cluster), name, west, f"east.{name}", "read_committed")
    assert (found.is_identical, found.records) == (True, RECORDS), found.different
