"""`apply` deploys a data centre on YARN; whatever is killed of it, every record is copied once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from tests.support.clusters.traffic import Traffic
from tests.support.clusters.yarn import Yarn, yarn
from tests.support.commands.command import anabranch
from tests.support.deploying import EAST_AND_WEST
from tests.support.driven_site import PARTITIONS, SECONDS, DrivenSite, python_of
from tests.support.replicator.copying import assert_copied
from tests.support.waiting import eventually

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(3_600)]

RECORDS = 100_000
FILE = (
    EAST_AND_WEST
    + """\
flows:
  - {{from: east, to: west, topics: {{include: ["{name}"]}}, heartbeats: false}}
datacenters:
  dc2:
    spark: {{conf: {conf}}}
    deploy: {deploy}
"""
)


class YarnSite(DrivenSite):
    """A data centre on YARN."""

    kind = "yarn"
    template = FILE

    def __init__(self, folder: Path, clusters: dict[str, EmbeddedCluster], name: str, cluster: Yarn) -> None:
        self.cluster = cluster
        self._staging = folder / "staging"
        super().__init__(folder, clusters, name)

    def where(self) -> dict[str, object]:
        configuration = str(self.cluster.configuration)
        return {"resource-managers": [self.cluster.url], "configuration": configuration, "memory": "3GB"}

    def spark(self) -> dict[str, str]:
        # Else drivers would be reached at the machine's own address.
        local = {"spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1"}
        return {"conf": json.dumps({**local, "spark.yarn.stagingDir": f"file://{self._staging}"})}


@pytest.fixture
def site(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, site_name: str
) -> Iterator[YarnSite]:
    with yarn(tmp_path / "yarn") as cluster:
        yield YarnSite(tmp_path, {"east": source_cluster, "west": target_cluster}, site_name, cluster)


def test_whatever_is_killed_every_record_is_copied_once(
    site: YarnSite, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    site.is_planned()
    traffic = Traffic(source_cluster, site.name, PARTITIONS, RECORDS, 2_000, per_second=200)
    traffic.start()
    site.is_deployed()
    site.heals("the process", lambda: psutil.Process(site.process()["pid"]).kill())
    site.heals("the driver's Python", lambda: python_of(master_of(site)).kill())
    site.heals("the application master", lambda: master_of(site).kill())
    site.is_restarted()
    traffic.finish()
    eventually("all is copied", site.copied, lambda copied: copied >= RECORDS, seconds=SECONDS)
    east, west = Cluster("east", (source_cluster.bootstrap,)), Cluster("west", (target_cluster.bootstrap,))
    assert_copied(east, site.name, west, f"east.{site.name}", RECORDS)
    site.stops()
    eventually("no application is left", lambda: not site.cluster.masters(), seconds=SECONDS)
    site.leaves_its_logs()


def test_what_the_cluster_lacks_is_told_in_the_plan(site: YarnSite) -> None:
    for fields, said in (
        ({"memory": "9GB"}, "no node has 2 free cores and 8583 MiB for replicate"),
        ({"cores": 9}, "no node has 9 free cores and 2861 MiB for replicate"),
        ({"queue": "mirrors"}, "it has no queue mirrors; there are default, root, root.default"),
        ({"configuration": "/nowhere"}, "expected the folder with the cluster's yarn-site.xml; found none in /nowhere"),
        ({"resource-managers": ["http://127.0.0.1:1"]}, "http://127.0.0.1:1: "),
    ):
        site.write(yarn=fields)
        refused = anabranch("plan", site.file)
        assert refused.code != 0, fields
        assert said in refused.stderr, refused
        assert f"{site.file}:11:13: " in refused.stderr, refused
        assert "(datacenters.dc2.deploy)" in refused.stderr, refused
    assert not site.folder.exists()


def master_of(site: YarnSite) -> psutil.Process:
    (found,) = site.cluster.masters()
    return found
