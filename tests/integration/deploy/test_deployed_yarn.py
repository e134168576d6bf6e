"""`apply` deploys a data centre on YARN; whatever is killed of it, every record is copied once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.status import PartitionState
from reconciler.state.status import StatusReader
from tests.support.clusters.kafka import create, declared
from tests.support.clusters.traffic import Traffic
from tests.support.clusters.yarn import Yarn, yarn
from tests.support.commands.command import Ended, anabranch
from tests.support.deploying import EAST_AND_WEST
from tests.support.replicator.copying import assert_copied, log_ends
from tests.support.waiting import eventually

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(3_600)]

CHANGES = 3
SECONDS = 900
RECORDS = 100_000
PARTITIONS = 2
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


class Site:
    """A data centre on YARN."""

    def __init__(self, folder: Path, clusters: dict[str, EmbeddedCluster], name: str, cluster: Yarn) -> None:
        self.name, self.folder, self.file, self.yarn = name, folder / "dc2", folder / "site.yaml", cluster
        self._clusters = clusters
        self._staging = folder / "staging"
        self.write()

    def write(self, **deploy: Any) -> None:
        fields = {"kind": "yarn", "folder": str(self.folder)} | deploy
        if fields["kind"] == "yarn":
            where = {"resource-managers": [self.yarn.url], "configuration": str(self.yarn.configuration)}
            fields["yarn"] = where | {"memory": "3GB"} | fields.get("yarn", {})
        # Else drivers would be reached at the machine's own address.
        conf = {
            "spark.yarn.appMasterEnv.SPARK_LOCAL_IP": "127.0.0.1",
            "spark.yarn.stagingDir": f"file://{self._staging}",
        }
        addresses = {alias: one.bootstrap for alias, one in self._clusters.items()}
        text = FILE.format(name=self.name, conf=json.dumps(conf), deploy=json.dumps(fields), **addresses)
        self.file.write_text(text)

    def apply(self) -> Ended:
        return anabranch("apply", self.file, "--yes", limit=SECONDS)

    def process(self) -> dict[str, Any]:
        told = anabranch("deployments", self.file, "--json")
        assert told.code == 0, told
        (one,) = json.loads(told.stdout)["processes"]
        found: dict[str, Any] = one
        return found

    def run(self) -> str:
        """Return the id of the run that has all partitions; empty while none does."""
        reader = StatusReader(declared("west", self._clusters["west"]), self.name)
        try:
            words, now = reader.current(), time.time()
        except Unreachable:
            # On a busy machine a broker may miss its heartbeats, and is not in the metadata for a moment.
            return ""
        finally:
            reader.close()
        running = [(one.run, partition) for one in words if one.is_live(now) for partition in one.partitions]
        runs = {run for run, partition in running if partition.state is PartitionState.RUNNING}
        return runs.pop() if len(runs) == 1 and len(running) == PARTITIONS else ""

    def copied(self) -> int:
        west = declared("west", self._clusters["west"])
        return log_ends(west, f"east.{self.name}", PARTITIONS)


@pytest.fixture
def site(
    tmp_path: Path,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Site]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    name = f"s{topic_name[-8:]}"
    create(source_cluster, name, PARTITIONS)
    with yarn(tmp_path / "yarn") as cluster:
        yield Site(tmp_path, {"east": source_cluster, "west": target_cluster}, name, cluster)


def test_whatever_is_killed_every_record_is_copied_once(
    site: Site, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    planned = anabranch("plan", site.file, "--detailed-exitcode")
    assert planned.code == CHANGES, planned
    assert "dc2 (processes, yarn)" in planned.stdout
    traffic = Traffic(source_cluster, site.name, PARTITIONS, RECORDS, 2_000, per_second=200)
    traffic.start()
    applied = site.apply()
    assert applied.code == 0, f"{applied.stdout}\n{applied.stderr}"
    assert "  done      dc2  deploy replicate" in applied.stdout.splitlines()
    assert anabranch("plan", site.file, "--detailed-exitcode").code == 0
    assert anabranch("drift", site.file, "--detailed-exitcode").code == 0
    heals(site, "the process", lambda: psutil.Process(site.process()["pid"]).kill())
    heals(site, "the driver's Python", lambda: python_of(site).kill())
    heals(site, "the application master", lambda: master_of(site).kill())
    restarted = anabranch("deployments", site.file, "--restart", "replicate", limit=SECONDS)
    assert restarted.code == 0, restarted
    traffic.finish()
    eventually("all is copied", site.copied, lambda copied: copied >= RECORDS, seconds=SECONDS)
    east, west = Cluster("east", (source_cluster.bootstrap,)), Cluster("west", (target_cluster.bootstrap,))
    assert_copied(east, site.name, west, f"east.{site.name}", RECORDS)
    stops(site)


def test_what_the_cluster_lacks_is_told_in_the_plan(site: Site) -> None:
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


def master_of(site: Site) -> psutil.Process:
    (found,) = site.yarn.masters()
    return found


def python_of(site: Site) -> psutil.Process:
    (found,) = [one for one in master_of(site).children() if any(word.endswith("driver.py") for word in one.cmdline())]
    return found


def heals(site: Site, what: str, kill: Callable[[], object]) -> None:
    """Kill something, and wait until another run copies."""
    before = eventually("the flow runs", site.run, seconds=SECONDS)
    kill()
    since = time.monotonic()
    after = eventually("another run copies", site.run, lambda run: run not in ("", before), seconds=SECONDS)
    print(f"{what} was killed: run {before} was followed by {after} after {time.monotonic() - since:.1f} s")
    copied = site.copied()
    eventually("records are copied", site.copied, lambda now: now > copied, seconds=SECONDS)
    eventually("it is known to run", lambda: site.process()["running"], seconds=SECONDS)


def stops(site: Site) -> None:
    """What is no longer declared ends, and leaves its logs."""
    site.write(kind="none")
    stopped = site.apply()
    assert stopped.code == 0, stopped
    assert "  done      dc2  stop replicate" in stopped.stdout.splitlines()
    eventually("no application is left", lambda: not site.yarn.masters(), seconds=SECONDS)
    assert sorted(path.name for path in site.folder.iterdir()) == ["driver.py", "logs"]
