"""Steps of deployments carried out on this machine: in order, rolled back, interrupted, and only where clusters are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.deploy.local import LocalDeployer
from reconciler.deploy.registry import Registry
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.datacenter import DataCenter
from reconciler.model.declared.deployment import Deployment
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.deployments import (
    GENERATIONS,
    DeploymentPlan,
    DeploymentStep,
    DeployProcess,
    FactChange,
    Process,
    StopProcess,
    UpdateProcess,
)
from reconciler.model.planning.outcome import Outcome
from reconciler.model.planning.steps import ClusterPlan, Plan, PlanStep
from reconciler.model.recorded.declaration import Declared
from reconciler.operate.deployments.carrying import DeploymentControls, DeploymentWork
from reconciler.operate.deployments.observed import Deployments
from tests.support.deploying import BROKEN, FILE, LIVES, interpreter, process
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

# It listens at a port that it chooses: it is up once it has run for a while.
LISTENS = ("metrics", "--clusters", "b")


class Site:
    """A data centre whose processes are scripts.

    Args:
        folder: for everything.
    """

    def __init__(self, folder: Path) -> None:
        self.environ = {"PATH": "/usr/bin:/bin", "XDG_STATE_HOME": str(folder / "registry")}
        deployment = Deployment("local", str(folder / "dc1"))
        clusters = {alias: Cluster(alias, (f"{alias}:9092",), "dc1") for alias in "ab"}
        places = {"dc1": DataCenter("dc1", deployment=deployment)}
        self.topology = Topology("shop", clusters, (), places, files=(FILE,))
        self.local = LocalDeployer(folder / "dc1", self.environ)
        self.is_over = False
        self.seen: list[PlanStep] = []

    def carry_out(
        self, *steps: DeploymentStep, clusters: tuple[ClusterPlan, ...] = (), outcome: Outcome | None = None
    ) -> Outcome:
        outcome = outcome or Outcome()
        plan = Plan("shop", "d", clusters, deployments=(DeploymentPlan("dc1", "local", 1, steps),))
        controls = DeploymentControls(lambda _: None, lambda: self.is_over, self.seen.append, patience=60.0)
        work = DeploymentWork(Deployments(self.topology, self.environ), controls)
        with work.files_ahead(plan) as ahead:
            ahead.outcome = outcome
        work.carry_out(plan, outcome)
        return outcome

    def running(self) -> dict[str, tuple[str, int]]:
        """Return interpreter and number of generations of each process that runs."""
        return {
            name: (one.process.python, one.generations) for name, one in self.local.found().items() if one.is_running
        }


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.local.end(made.local.folder.generations())


def one(folder: Path, name: str = "replicate", text: str = LIVES, program: str = "python") -> Process:
    return replace(process(folder, name=name), command=LISTENS, python=interpreter(folder, text, program))


def changed(new: Process) -> UpdateProcess:
    return UpdateProcess(new, (FactChange("python", "old", new.python),))


def test_what_is_deployed_runs_is_on_record_and_stops_without_a_trace(site: Site, tmp_path: Path) -> None:
    process = one(tmp_path)
    done = site.carry_out(DeployProcess(process))
    assert (done.is_complete, done.done, site.seen) == (True, [DeployProcess(process)], [DeployProcess(process)])
    assert site.running() == {"replicate": (process.python, 1)}
    (place,) = Registry("shop", site.environ).read()
    assert (place.datacenter, place.kind, place.folder) == ("dc1", "local", process.folder)
    assert Deployments(site.topology, site.environ).found()["dc1"][0].process == process
    assert site.carry_out(StopProcess(process)).is_complete
    assert (site.running(), Registry("shop", site.environ).read()) == ({}, ())
    assert sorted(path.name for path in (tmp_path / "dc1").iterdir()) == ["logs"]


@pytest.mark.parametrize("name", ["replicate", "metrics"])
def test_what_does_not_come_up_leaves_the_former_one_running(name: str, site: Site, tmp_path: Path) -> None:
    former = one(tmp_path, name)
    assert site.carry_out(DeployProcess(former)).is_complete
    pid = site.local.found()[name].pid
    failed = site.carry_out(changed(one(tmp_path, name, BROKEN, "broken")))
    (failure,) = failed.failed
    assert failure.problem.code == "AB766"
    assert "ended with 3" in failure.problem.message
    assert "no good" in failure.problem.message
    eventually("the former one runs", site.running, lambda running: running == {name: (former.python, 1)})
    # What listens was ended before, and was begun again.
    assert (site.local.found()[name].pid == pid) is (name == "replicate")


def test_what_still_runs_goes_on_until_another_is_up_also_where_the_newest_does_not(site: Site, tmp_path: Path) -> None:
    former = one(tmp_path)
    assert site.carry_out(DeployProcess(former)).is_complete
    pid = site.local.found()["replicate"].pid
    # An apply was killed while it waited for one that cannot run.
    broken = one(tmp_path, text=BROKEN, program="broken")
    site.local.begin(broken)
    eventually("it was tried", lambda: site.local.found()["replicate"].restarts)
    failed = site.carry_out(DeployProcess(broken, "it does not run"))
    assert [one.problem.code for one in failed.failed] == ["AB766"]
    assert site.running() == {"replicate": (former.python, 1)}
    assert site.local.found()["replicate"].pid == pid
    assert site.carry_out(changed(one(tmp_path, program="other"))).is_complete
    assert site.running() == {"replicate": (str(tmp_path / "other-prefix" / "bin" / "other"), 1)}


def test_a_surplus_ends(site: Site, tmp_path: Path) -> None:
    process = one(tmp_path)
    assert site.carry_out(DeployProcess(process)).is_complete
    site.local.begin(process)
    eventually("two run", lambda: site.running() == {"replicate": (process.python, 2)})
    assert site.carry_out(UpdateProcess(process, (FactChange(GENERATIONS, "2", "1"),))).is_complete
    assert site.running() == {"replicate": (process.python, 1)}


def test_nothing_runs_that_was_not_put_in_force_and_its_files_are_put_back(site: Site, tmp_path: Path) -> None:
    process = one(tmp_path)
    assert site.carry_out(DeployProcess(process)).is_complete
    newer = replace(FILE, text="version: 1\nname: newer\n")
    site.topology = replace(site.topology, files=(newer,))
    due = ClusterPlan("b", "dc1", declared=Declared("d", None))
    refused = site.carry_out(changed(one(tmp_path, program="other")), clusters=(due,))
    (skipped,) = refused.skipped
    assert skipped.why == "the declaration did not come into force at b"
    assert (site.running(), site.local.folder.files()) == ({"replicate": (process.python, 1)}, (FILE,))
    files = UpdateProcess(process, (FactChange("files", "old", "new"),))
    agreed = site.carry_out(files, clusters=(due,), outcome=Outcome(in_force=["b"]))
    assert (agreed.is_complete, site.local.folder.files()) == (True, (newer,))


def test_an_interruption_leaves_the_rest_undone(site: Site, tmp_path: Path) -> None:
    site.is_over = True
    left = site.carry_out(DeployProcess(one(tmp_path)))
    assert [one.why for one in left.skipped] == ["interrupted"]
    assert not (tmp_path / "dc1").exists()
