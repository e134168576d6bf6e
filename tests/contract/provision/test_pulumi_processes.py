"""Processes of a data centre in its stack, with the stand-in: recorded, compared, and held as they run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.declare import load
from reconciler.deploy.local import LocalDeployer
from reconciler.embedded import EmbeddedCluster
from reconciler.model.planning.deployments import DeployProcess
from reconciler.model.planning.steps import Plan
from reconciler.operate.deployments.observed import Deployments
from stacks.automation import PulumiProvisioner
from stacks.names import PROCESS_TYPE
from tests.support.clusters.kafka import create
from tests.support.deploying import interpreter
from tests.support.provision import fake_pulumi
from tests.support.provision.provisioning import Way, entries, held, plan_of


@pytest.fixture
def deployed(file: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A topology that deploys what fills `south` on this machine, with a script for an interpreter."""
    monkeypatch.setenv("XDG_STATE_HOME", str(file.parent / "registry"))
    create(source_cluster, topic_name)
    python = interpreter(file.parent)
    deploy = f"{{kind: local, folder: {file.parent / 'dc2'}, python: {python}}}"
    file.write_text(f"{file.read_text()}datacenters:\n  dc2: {{deploy: {deploy}}}\n")
    return file


def whole_plan(file: Path) -> Plan:
    """Return the plan for clusters and for what is deployed."""
    topology = load((file,))
    return replace(plan_of(topology), deployments=Deployments(topology).plans(["south"]))


@contextmanager
def started(file: Path) -> Iterator[None]:
    """Have everything run that the topology declares, without waiting for flows."""
    topology = load((file,))
    (wanted,) = Deployments(topology).wanted()
    deployer = LocalDeployer(Path(wanted.folder), {"PATH": "/usr/bin:/bin"})
    deployer.folder.make()
    deployer.folder.write_files(topology.files)
    generation = deployer.begin(wanted)
    try:
        yield
    finally:
        deployer.end([generation])


def recorded(way: Way) -> dict[str, Any]:
    """Return what the stack has of its one process."""
    (entry,) = entries(way, PROCESS_TYPE)
    inputs: dict[str, Any] = entry["inputs"]
    return inputs


@pytest.mark.long
def test_a_process_is_recorded_and_forgotten_when_it_did_not_come_up(way: Way, deployed: Path) -> None:
    plan = whole_plan(deployed)
    assert [type(step) for step in plan.deployment_steps] == [DeployProcess]
    assert way.apply(deployed, plan).is_complete
    assert held(way, PROCESS_TYPE) == ["replicate"]
    assert recorded(way)["command"] == "replicate --clusters south --wait=forever"
    # It was never started, so the next apply has it as a new one.
    assert way.apply(deployed, whole_plan(deployed)).is_complete
    ups = fake_pulumi.commands(way.home, "up")
    assert len(ups) == 2, "a data centre in which a process is all that changes has its `up` too"


def test_a_stack_holds_a_process_as_it_runs(way: Way, deployed: Path) -> None:
    with started(deployed):
        plan = whole_plan(deployed)
        assert plan.deployment_steps == ()
        assert way.apply(deployed, plan).is_complete
        former = recorded(way)["files"]
    # As after an apply without Pulumi: the files of now run, and the stack has the former ones.
    deployed.write_text(deployed.read_text() + "# reviewed\n")
    with started(deployed):
        idle = whole_plan(deployed)
        assert idle.deployment_steps == ()
        provisioner = PulumiProvisioner(load((deployed,)), (deployed,), way.project)
        assert provisioner.settle(idle) == ["Pulumi stack dc2 was brought in line with its clusters: 1 corrected"]
        assert recorded(way)["files"] != former
        assert provisioner.settle(idle) == []
