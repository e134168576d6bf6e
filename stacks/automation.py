"""Carry a plan out with Pulumi: the same steps and the same outcome as the provisioner `direct`, stack by stack.

Called by `apply`. A stack is a data centre, and the program declares all of it; so what Pulumi would do is held against
the plan three times: the clusters are looked at again and must ask for the very same steps, the stack's state is
brought in line with them (`state`), and a preview must show nothing that no step says. Topics are protected besides:
what is to be deleted is deleted here, after Pulumi has done the rest, and without it.

The topics of our own state are made here, ownership is recorded before `up` and confirmed after it, and the declaration
is put in force last, all as `direct` does it: a killed apply is finished by the next one, whichever provisioner it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reconciler.model.base.errors import AnabranchError, Problem, Refused
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.outcome import Failure, Outcome
from reconciler.model.planning.steps import ClusterPlan, CreateInternalTopic, Plan, Step
from reconciler.provision.work import MayChange, Progress, Work, put_in_force
from stacks.brokers import check_brokers
from stacks.command import Command, check_interpreter
from stacks.datacenter import DataCenterWork
from stacks.preparing import Setting
from stacks.program import clusters_in
from stacks.project import ensure
from stacks.providers import check_login


class PulumiProvisioner:
    """Carries plans out with Pulumi.

    Args:
        topology: the declaration that the plan was made from.
        files: the files that declare it; the program reads them again.
        project: folder of the Pulumi project; it is made when it is not there.
        progress: called for each finished step.
        may_change: asked right before each change of a target, by alias; raises an error where nothing may be changed.

    Raises:
        EnvironmentFault: AB370, there is no `pulumi` that could be used.
    """

    def __init__(
        self,
        topology: Topology,
        files: Sequence[Path],
        project: Path,
        progress: Progress = lambda step: None,
        may_change: MayChange = lambda alias: None,
    ) -> None:
        self._topology = topology
        self._files = files
        self._project = project
        self._progress = _Once(progress)
        self._may_change = may_change
        self._command = Command(_variables(topology))
        self._planned: tuple[str, ...] = ()

    def prepare(self, plan: Plan) -> None:
        """Make sure that Pulumi can carry a plan out at all, and that its project is there.

        Raises:
            Refused: AB440, only a part of a data centre would be applied; AB448, a broker has settings of its own.
            EnvironmentFault: AB370, Pulumi could not run the program with this interpreter.
            AnabranchError: AB304, AB306 or AB372.
        """
        check_interpreter()
        self._check(_parts(plan))
        ensure(self._project, self._topology.name)
        self._planned = tuple(cluster.alias for cluster in plan.clusters)

    def apply(self, plan: Plan) -> Outcome:
        """Carry out as much of the plan as can be, one data centre after the other, and tell what became of every step.

        Args:
            plan: one of its own, or a wave of the one that was prepared.

        Raises:
            Refused: AB407, something has changed since the plan was made; AB441, Pulumi would do something else;
                nothing was changed but topics of our own state.
            Locked: AB503, somebody else updates the first stack; likewise.
            AnabranchError: AB371, likewise, or what `prepare` raises.
        """
        if not {cluster.alias for cluster in plan.clusters} <= set(self._planned):
            self.prepare(plan)
        parts = _parts(plan)
        outcome = Outcome()
        for name, clusters in parts.items():
            self._carry_out(name, clusters, plan, outcome)
        if not outcome.holds_back(plan):
            put_in_force(self._topology, plan, self._may_change, outcome)
        return outcome

    def settle(self, plan: Plan) -> list[str]:
        """Bring the stacks of data centres in line with their clusters where the plan has nothing to do.

        What `direct` deleted would else stand in a stack that `pulumi preview` fails on, and what it made would be
        missing, for as long as nothing else changes.

        Args:
            plan: as it was carried out.

        Returns:
            What was changed of each stack, a sentence each.

        Raises:
            AnabranchError: a stack cannot be brought in line, as of `prepare` and `apply`.
        """
        busy, everywhere = _parts(plan), dict.fromkeys(cluster.datacenter for cluster in plan.clusters)
        parts = {name: _clusters_of(plan, name) for name in everywhere if name not in busy}
        idle = {name: clusters for name, clusters in parts.items() if not self._left_out(name, clusters)}
        if not idle:
            return []
        check_interpreter()
        self._check(idle)
        ensure(self._project, self._topology.name)
        self._planned = tuple(cluster.alias for cluster in plan.clusters)
        notes = []
        for name, clusters in idle.items():
            work = DataCenterWork(self._setting(plan), name, self._works(clusters, plan), self._progress)
            if what := work.bring_in_line():
                notes.append(f"Pulumi stack {name} was brought in line with its clusters: {what}")
        return notes

    def _check(self, parts: dict[str, tuple[ClusterPlan, ...]]) -> None:
        """Make sure that Pulumi can do it at all.

        Raises:
            Refused: AB440, a data centre is not planned for whole; AB448, the provider would misread its brokers.
            EnvironmentFault: AB306, the provider cannot log in.
        """
        problems = []
        for name, clusters in parts.items():
            if missing := self._left_out(name, clusters):
                message = f"is one Pulumi stack, and {', '.join(missing)} would be left out"
                whole = sorted({*missing, *(cluster.alias for cluster in clusters)} | self._filled(name))
                remedy = f"name all of it: --clusters {','.join(whole)}, or use --provisioner direct"
                problems.append(Problem("AB440", f"data centre {name}", message, remedy))
        if problems:
            raise Refused(problems)
        for name in parts:
            for alias in clusters_in(self._topology, name):
                check_login(self._topology.clusters[alias])
        for clusters in parts.values():
            for one in clusters:
                if one.steps:
                    check_brokers(self._topology.clusters[one.alias])

    def _filled(self, name: str) -> set[str]:
        """Return the clusters of a data centre that flows lead into."""
        return {flow.target for flow in self._topology.flows_into(clusters_in(self._topology, name))}

    def _left_out(self, name: str, clusters: Sequence[ClusterPlan]) -> list[str]:
        """Return the clusters of a data centre that a plan for some of them leaves out."""
        return sorted(self._filled(name) - {cluster.alias for cluster in clusters})

    def _setting(self, plan: Plan) -> Setting:
        return Setting(self._topology, plan, self._planned, self._files, self._project, self._command, self._may_change)

    def _works(self, clusters: Sequence[ClusterPlan], plan: Plan) -> list[Work]:
        return [Work(self._topology, plan, one, self._progress, self._may_change) for one in clusters]

    def _carry_out(self, name: str, clusters: Sequence[ClusterPlan], plan: Plan, outcome: Outcome) -> None:
        """Work on one data centre.

        Raises:
            AnabranchError: nothing came of it, nor of any before.
        """
        works: list[Work] = []
        lost: Problem | None = None
        try:
            works += self._works(clusters, plan)
            work_here = DataCenterWork(self._setting(plan), name, works, self._progress)
            work_here.run()
            lost = work_here.lost
        except AnabranchError as error:
            if not any(_tells(part) for part in (outcome, *(work.outcome for work in works))):
                raise
            for work in works:
                work.fail(work.open, error.problems[0])
            if not works:
                outcome.failed += [Failure(step, error.problems[0]) for one in clusters for step in one.steps]
            outcome.not_in_force += error.problems[1:]
        for work in works:
            outcome.add(work.outcome)
        if lost is not None and not any(work.outcome.failed for work in works):
            # Whatever it was, it is about none of the steps, and the stack is not what it should be.
            outcome.not_in_force.append(lost)


class _Once:
    """Tells of every step once: Pulumi says it first, and the outcome again."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._told: set[int] = set()

    def __call__(self, step: Step) -> None:
        if id(step) not in self._told:
            self._told.add(id(step))
            self._progress(step)


def _parts(plan: Plan) -> dict[str, tuple[ClusterPlan, ...]]:
    """Return the clusters of each data centre in which there is something to do."""
    busy = dict.fromkeys(cluster.datacenter for cluster in plan.clusters if cluster.steps)
    # A stack holds processes too, beside what is on the clusters.
    busy |= dict.fromkeys(one.datacenter for one in plan.deployments if one.steps)
    found = {name: _clusters_of(plan, name) for name in busy}
    return {name: clusters for name, clusters in found.items() if clusters}


def _clusters_of(plan: Plan, datacenter: str) -> tuple[ClusterPlan, ...]:
    return tuple(one for one in plan.clusters if one.datacenter == datacenter)


def _tells(part: Outcome) -> bool:
    """Tell whether an outcome holds what nobody would hear of if an error took its place."""
    is_changed = any(not isinstance(step, CreateInternalTopic) for step in part.done)
    return is_changed or bool(part.failed or part.skipped or part.not_in_force)


def _variables(topology: Topology) -> frozenset[str]:
    """Return the variables in which a topology keeps secrets: the program asks for them."""
    references = [one for cluster in topology.clusters.values() for one in cluster.security.references]
    return frozenset(one.name for one in references if one.scheme == "env")
