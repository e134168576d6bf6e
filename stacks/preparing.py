"""What comes before `up`: a data centre is looked at again, and its stack is selected and brought in line with that."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reconciler.model.base.errors import EnvironmentFault, Problem, Refused
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.removals import Removal
from reconciler.model.planning.steps import Plan, RevokeAcl
from reconciler.observe.record import write_observed
from reconciler.observe.topology import observe
from reconciler.plan.ahead import build_plan_ahead
from reconciler.provision.work import MayChange, Work
from stacks.command import Command
from stacks.handover import Handover, handed_over_in
from stacks.planned import lasting, moved_on, resource_of
from stacks.processes import declared_processes, found_processes
from stacks.program import clusters_in
from stacks.stack import Stack
from stacks.state import Settled, Wanted, settle, stranger
from stacks.view import upstream, view_of

LEAST_PARALLEL, MOST_PARALLEL = 16, 64
"""Resources at a time: the provider waits a second for each topic that it makes, and 300 topics took 46 s with Pulumi's
own choice and 31 s with 64."""

_AGAIN = "run apply again and read the new plan"
_MOST_NAMED = 5
_APART = (
    "give this topology a project of its own: another folder (--pulumi-dir) with another `name` in its Pulumi.yaml; or "
    "another backend, or --provisioner direct"
)


@dataclass(frozen=True)
class Setting:
    """What the work on all data centres shares.

    Attributes:
        topology: the declaration.
        plan: what is carried out: all of a plan, or a wave of it.
        planned: aliases of the clusters that all of the plan is for.
        files: that declare it.
        project: folder of the Pulumi project.
        command: runs Pulumi.
        may_change: asked right before each change.
    """

    topology: Topology
    plan: Plan
    planned: Sequence[str]
    files: Sequence[Path]
    project: Path
    command: Command
    may_change: MayChange


@dataclass(frozen=True)
class Ready:
    """A stack that can be brought up.

    Attributes:
        stack: selected and configured.
        settled: its state.
        record: what was observed, written down.
        path: what is handed to the program; it is read in every run.
        parallel: how many resources are worked on at a time.
    """

    stack: Stack
    settled: Settled
    record: Path
    path: Path
    parallel: int


class Preparation:
    """Prepares the stack of one data centre.

    Args:
        setting: what it has in common with others.
        name: of the data centre, and of its stack.
        works: its clusters' steps.
    """

    def __init__(self, setting: Setting, name: str, works: Sequence[Work]) -> None:
        self._setting = setting
        self._name = name
        self._works = works
        self._deleted = frozenset(
            resource_of(step) for work in works for step in work.rest if isinstance(step, Removal)
        )

    def look_again(self) -> Wanted:
        """Observe the data centre whole, and make sure that what it asks for now is what the plan says.

        What is before it is observed too: the plan may copy on what it makes there, in either order.

        Raises:
            Refused: AB407, something has changed since the plan was made.
        """
        topology, here = self._setting.topology, clusters_in(self._setting.topology, self._name)
        planned = {one.alias: lasting(one) for one in self._setting.plan.clusters if one.alias in here}
        before = upstream(topology, planned, self._setting.planned)
        self._observed = observe(topology, tuple({*here, *before}), resting_may_be_away=True)
        self._answering = tuple(alias for alias in before if not self._observed[alias].is_away)
        now = build_plan_ahead(topology, self._observed, self._answering)
        found = {one.alias: lasting(one) for one in now.clusters}
        for alias, steps in planned.items():
            if moved := moved_on(found.get(alias, ()), steps):
                more = f" and {len(moved) - _MOST_NAMED} more" if len(moved) > _MOST_NAMED else ""
                message = f"has changed since the plan was made: {', '.join(moved[:_MOST_NAMED])}{more}"
                raise Refused(Problem("AB407", topology.clusters[alias].where, message, _AGAIN))
        view = view_of(topology, self._observed, here, now, self._deleted)
        first = {id(step) for work in self._works for step in work.before_topics()}
        # What is done before Pulumi comes is not there for it any more.
        revocations = [
            step for work in self._works for step in work.of(RevokeAcl) if not step.is_kept and id(step) not in first
        ]
        return Wanted(
            topics=view.topics,
            acls=view.acls,
            revoked=[(step.cluster, step.binding) for step in revocations],
            observed=self._observed,
            processes=declared_processes(topology, self._name),
            running=found_processes(topology, self._name),
        )

    def prepare(self, wanted: Wanted, folder: Path) -> Ready:
        """Select the stack, tell it where it is and what there is, and write down what the program must go by.

        Raises:
            Refused: AB442, the stack is another topology's.
        """
        topology = self._setting.topology
        (record,) = write_observed(folder, topology, self._observed, clusters_in(topology, self._name))
        path = folder / "handover.json"
        secrets = frozenset(_secrets(topology.clusters.values()))
        stack = Stack(self._setting.command, self._setting.project, self._name, handed_over_in(path), secrets)
        version, deployment = stack.state()
        if (other := stranger(deployment, topology.name, self._observed)) is not None:
            message = f"holds what topology {other} declares, and Pulumi would forget that, or delete it"
            raise Refused(Problem("AB442", f"Pulumi stack {self._name}", message, _APART))
        stack.configure({"topology": self._files(), "datacenter": self._name})
        settled = settle(deployment, wanted)
        if settled.is_changed:
            stack.put_state(version, settled.deployment)
        self.hand_over(record, path, sorted(settled.imported))
        parallel = max(LEAST_PARALLEL, min(MOST_PARALLEL, len(wanted.topics) + len(wanted.acls)))
        return Ready(stack, settled, record, path, parallel)

    def hand_over(self, record: Path, path: Path, imported: Iterable[str]) -> None:
        """Write down what the program must go by in its next run."""
        Handover(str(record), self._answering, tuple(imported), tuple(sorted(self._deleted))).write(path)

    def _files(self) -> str:
        """Return the topology's files as the program reads them: relative, as a project may be cloned anywhere."""
        root = self._setting.project.resolve()
        paths = [os.path.relpath(path.resolve(), root) for path in self._setting.files]
        return paths[0] if len(paths) == 1 else json.dumps(paths)


def _secrets(clusters: Iterable[Cluster]) -> Iterator[str]:
    """Yield the values that must not be shown; what cannot be looked up here cannot be shown either."""
    for cluster in clusters:
        security = cluster.security
        for reference in (security.password, security.key_password, security.oauth and security.oauth.client_secret):
            try:
                if reference and (value := reference.resolve(cluster.where)):
                    yield value
            except EnvironmentFault:
                continue
