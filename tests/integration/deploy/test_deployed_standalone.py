"""`apply` deploys a data centre on a Spark cluster; whatever is killed of it, every record is copied once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bench.competitors.standalone import Standalone, standalone
from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from tests.support.clusters.traffic import Traffic
from tests.support.deploying import EAST_AND_WEST
from tests.support.driven_site import PARTITIONS, SECONDS, DrivenSite, python_of
from tests.support.replicator.copying import assert_copied
from tests.support.waiting import eventually

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(3_600)]

RECORDS = 200_000
FILE = (
    EAST_AND_WEST
    + """\
flows:
  - {{from: east, to: west, topics: {{include: ["{name}"]}}, heartbeats: false}}
datacenters:
  dc2:
    spark:
      master: {master}
      conf: {{spark.driver.host: 127.0.0.1, spark.executor.cores: 1, spark.executor.memory: 512m}}
    deploy: {deploy}
"""
)


class StandaloneSite(DrivenSite):
    """A data centre on a Spark cluster."""

    kind = "standalone"
    template = FILE

    def __init__(self, folder: Path, clusters: dict[str, EmbeddedCluster], name: str, cluster: Standalone) -> None:
        self.cluster = cluster
        super().__init__(folder, clusters, name)

    def where(self) -> dict[str, str]:
        return {"rest": self.cluster.rest, "web": self.cluster.web}

    def spark(self) -> dict[str, str]:
        return {"master": self.cluster.master}


@pytest.fixture
def site(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, site_name: str
) -> Iterator[StandaloneSite]:
    with standalone(tmp_path / "spark", cores=6, memory="6g") as cluster:
        yield StandaloneSite(tmp_path, {"east": source_cluster, "west": target_cluster}, site_name, cluster)


def test_whatever_is_killed_every_record_is_copied_once(
    site: StandaloneSite, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    site.is_planned()
    traffic = Traffic(source_cluster, site.name, PARTITIONS, RECORDS, 2_000, per_second=200)
    traffic.start()
    site.is_deployed()
    site.heals("the driver's Python", lambda: python_of(jvm_of(site)).kill())
    site.heals("the driver's JVM", lambda: jvm_of(site).kill())
    site.heals("the driver's worker", lambda: site.cluster.kill_worker(worker_of(site)))
    site.cluster.kill_master()
    goes_on(site)
    site.is_restarted()
    traffic.finish()
    eventually("all is copied", site.copied, lambda copied: copied >= RECORDS, seconds=SECONDS)
    east, west = Cluster("east", (source_cluster.bootstrap,)), Cluster("west", (target_cluster.bootstrap,))
    assert_copied(east, site.name, west, f"east.{site.name}", RECORDS)
    site.stops()
    eventually("no driver is left", lambda: not any(site.cluster.drivers()))
    assert site.cluster.state()["activedrivers"] == []
    site.leaves_its_logs()


def jvm_of(site: StandaloneSite) -> psutil.Process:
    (found,) = [jvm for one in site.cluster.drivers() for jvm in one]
    return found


def worker_of(site: StandaloneSite) -> int:
    (found,) = [number for number, one in enumerate(site.cluster.drivers()) if one]
    return found


def goes_on(site: StandaloneSite) -> None:
    """Wait until a new master knows a driver that runs, and records are copied."""
    since = time.monotonic()
    eventually("a driver is known to run", lambda: site.cluster.state()["activedrivers"], seconds=SECONDS)
    eventually("it is known to run", lambda: site.process()["running"], seconds=SECONDS)
    eventually("the flow runs", site.run, seconds=SECONDS)
    site.copies()
    print(f"the master was killed: all runs after {time.monotonic() - since:.1f} s")
