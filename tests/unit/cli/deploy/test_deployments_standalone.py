"""What a plan and `doctor` tell of a Spark cluster that is full or away, with the place in the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler import declare
from reconciler.deploy.standalone import StandaloneDeployer
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.planning.health import Check
from reconciler.operate.deployments.observed import Deployments
from tests.support.deploying import LIVES, interpreter
from tests.support.spark_master import ENVIRON, MasterStandIn
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

TOPOLOGY = """\
version: 1
name: shop
clusters:
  a: {{bootstrap: "127.0.0.1:1", datacenter: dc1}}
  b: {{bootstrap: "127.0.0.1:2", datacenter: dc2}}
flows: [{{from: a, to: b, tasks: {tasks}}}]
datacenters:
  dc2:
    spark: {{master: "spark://127.0.0.1:7077"}}
    deploy: {{kind: standalone, folder: {folder}, python: {python},
             standalone: {{rest: "{url}", web: "{url}", cores: {cores}}}}}
"""


@pytest.fixture
def master(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MasterStandIn]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = MasterStandIn(tmp_path / "work", ENVIRON)
    yield made
    made.close()


def deployments(folder: Path, master: MasterStandIn, tasks: int = 2, cores: int = 1) -> Deployments:
    file = folder / "shop.yaml"
    python = interpreter(folder, LIVES)
    file.write_text(TOPOLOGY.format(folder=folder / "dc2", python=python, url=master.url, tasks=tasks, cores=cores))
    return Deployments(declare.load([file]))


def refused(found: Deployments) -> Problem:
    with pytest.raises(EnvironmentFault) as caught:
        found.plans(["b"])
    (problem,) = caught.value.problems
    return problem


def test_a_cluster_without_room_is_told_with_the_place_in_the_file(tmp_path: Path, master: MasterStandIn) -> None:
    made = deployments(tmp_path, master, tasks=4)
    problem = refused(made)
    assert (problem.code, problem.where) == ("AB769", f"{tmp_path}/shop.yaml:10:13 (datacenters.dc2.deploy)")
    assert problem.message == "3 free cores are left beside 1 of drivers, for 4 tasks, all at once"
    (check,) = made.checks(["b"])
    assert (check.level, check.found) == ("failure", problem.message)
    (plan,) = deployments(tmp_path, master).plans(["b"])
    assert [step.name for step in plan.steps] == ["replicate"]
    assert not (tmp_path / "dc2").exists()


def test_a_master_that_is_away_is_told_with_the_place_in_the_file(tmp_path: Path, master: MasterStandIn) -> None:
    made = deployments(tmp_path, master)
    master.status = "STANDBY"
    problem = refused(made)
    assert (problem.code, problem.where) == ("AB768", f"{tmp_path}/shop.yaml:10:13 (datacenters.dc2.deploy)")
    assert problem.message == f"{master.url}: the master is STANDBY"


def test_a_full_cluster_is_no_trouble_for_what_runs_there(tmp_path: Path, master: MasterStandIn) -> None:
    made = deployments(tmp_path, master)
    (process,) = made.wanted()
    cluster = StandaloneDeployer(tmp_path / "dc2", lambda _: 2)
    cluster.folder.make()
    cluster.folder.write_files(made.topology.files)
    cluster.begin(process)
    eventually("it runs", lambda: cluster.found()["replicate"].is_running)
    try:
        master.workers[0]["coresfree"] = 0
        assert list(made.checks(["b"])) == [Check("deployment dc2", "ok", f"replicate: standalone, in {tmp_path}/dc2")]
        # Other files are read by what runs; another driver would need room beside it.
        (plan,) = deployments(tmp_path, master, tasks=3).plans(["b"])
        assert [step.starts for step in plan.steps] == [False]
        problem = refused(deployments(tmp_path, master, cores=2))
        assert (problem.code, "no worker has 2 free cores" in problem.message) == ("AB769", True)
    finally:
        cluster.end(cluster.folder.generations())
