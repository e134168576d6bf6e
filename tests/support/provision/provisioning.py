"""Ways to carry a plan out, for tests that hold of every provisioner: directly, with Pulumi, with a stand-in for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from reconciler.declare import load
from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.outcome import Outcome
from reconciler.model.planning.steps import Plan, Step
from reconciler.observe.topology import observe
from reconciler.plan.ahead import build_plan_ahead
from reconciler.provision.direct import DirectProvisioner
from stacks.automation import PulumiProvisioner
from stacks.names import TOPIC_TYPE, name_in
from tests.support.provision import fake_pulumi

Kind = Literal["direct", "stand-in", "pulumi"]

SOURCE, TARGET = "north", "south"
STACK = "dc2"
DECLARATION = """\
version: 1
name: {name}
clusters:
  north: {{bootstrap: ["{source}"], datacenter: dc1}}
  south: {{bootstrap: ["{target}"], datacenter: dc2}}
defaults:
  topics: {{include: ["{topic}.*"]}}
flows:
  - {{from: north, to: south}}
"""


@dataclass(frozen=True)
class Way:
    """One way to carry plans out.

    Attributes:
        kind: which.
        folder: where topology files and the Pulumi project are.
    """

    kind: Kind
    folder: Path

    @property
    def project(self) -> Path:
        """The folder of the Pulumi project."""
        return self.folder / "pulumi"

    @property
    def home(self) -> Path:
        """Where the stand-in keeps states and calls."""
        return self.folder / "home"

    def apply(
        self,
        file: Path,
        plan: Plan | None = None,
        progress: Callable[[Step], None] = lambda step: None,
        may_change: Callable[[str], None] = lambda alias: None,
    ) -> Outcome:
        """Carry a plan out, by default the one of now."""
        topology = load((file,))
        plan = plan or plan_of(topology)
        if self.kind == "direct":
            return DirectProvisioner(topology, progress, may_change).apply(plan)
        return PulumiProvisioner(topology, (file,), self.project, progress, may_change).apply(plan)


def plan_of(topology: Topology, *targets: str) -> Plan:
    """Return what an apply would do at the given targets, by default at all of them."""
    named = targets or tuple(dict.fromkeys(flow.target for flow in topology.flows))
    return build_plan_ahead(topology, observe(topology, named), named)


def write(folder: Path, source: EmbeddedCluster, target: EmbeddedCluster, topic: str, text: str = DECLARATION) -> Path:
    """Write a topology file of one flow from `north` to `south`, of the topics that begin so."""
    path = folder / "topology.yaml"
    name = topic[-40:].strip("-")
    path.write_text(text.format(name=name, source=source.bootstrap, target=target.bootstrap, topic=topic))
    return path


def make_way(kind: Kind, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Way:
    """Set the environment up for a way; skip where it cannot be had."""
    way = Way(kind, folder)
    if kind == "stand-in":
        path = os.pathsep.join([str(fake_pulumi.install(folder / "bin")), os.environ["PATH"]])
        monkeypatch.setenv("PATH", path)
        monkeypatch.setenv("FAKE_PULUMI_HOME", str(way.home))
    elif kind == "pulumi":
        if shutil.which("pulumi") is None:
            pytest.skip("the pulumi command is not on PATH")
        (folder / "backend").mkdir()
        monkeypatch.setenv("PULUMI_BACKEND_URL", (folder / "backend").as_uri())
        monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "for this test alone")
    return way


def held(way: Way, kind: str = TOPIC_TYPE, stack: str = STACK) -> list[str]:
    """The names of what a stack has of a kind."""
    return sorted(name_in(one["urn"]) for one in entries(way, kind, stack))


def entries(way: Way, kind: str = TOPIC_TYPE, stack: str = STACK) -> list[dict[str, Any]]:
    """What the state of a stack has of a kind."""
    resources = fake_pulumi.saved(way.home, stack)["deployment"].get("resources", [])
    return [one for one in resources if one["type"] == kind]
