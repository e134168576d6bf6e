"""The steps of one data centre, carried out by its stack: what comes before `up`, and what came of each step after."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Problem, Refused
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.removals import Removal
from reconciler.model.planning.steps import (
    AddPartitions,
    AlterConfig,
    CreateTopic,
    GrantAcl,
    Plan,
    RecordOwnership,
    RevokeAcl,
    Step,
    TopicChange,
)
from reconciler.observe.record import write_observed
from reconciler.observe.topology import observe
from reconciler.plan.ahead import build_plan_ahead
from reconciler.provision.grants import Grants
from reconciler.provision.removal import remove_topics
from reconciler.provision.work import MayChange, Progress, Work
from stacks.command import Command
from stacks.events import Events, Expected
from stacks.handover import Handover, handed_over_in
from stacks.names import acl_name
from stacks.planned import is_as_planned, lasting, resource_of
from stacks.program import clusters_in
from stacks.stack import Stack
from stacks.state import Settled, Wanted, settle, stranger
from stacks.view import upstream, view_of

LEAST_PARALLEL, MOST_PARALLEL = 16, 64
"""Resources at a time: the provider waits a second for each topic that it makes, and 300 topics took 46 s with Pulumi's
own choice and 31 s with 64."""

_AGAIN = "run apply again and read the new plan"
_APART = (
    "give this topology a project of its own: another folder (--pulumi-dir) with another `name` in its Pulumi.yaml; or "
    "another backend, or --provisioner direct"
)
_NOT_REACHED = "Pulumi had ended before it came to it"
_NOT_KNOWN = "it was begun, and may be done: apply again, which finds what is there"


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
class _Ready:
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


class DataCenterWork:
    """The steps of one data centre.

    Args:
        setting: what it has in common with others.
        name: of the data centre, and of its stack.
        works: its clusters' steps; what becomes of them is in their outcomes.
        progress: called for each step that Pulumi has done, at once.

    Attributes:
        lost: why Pulumi did not come to its end, where it did not.
    """

    def __init__(self, setting: Setting, name: str, works: Sequence[Work], progress: Progress) -> None:
        self._setting = setting
        self._name = name
        self._works = works
        self._progress = progress
        self.lost: Problem | None = None
        self._busy = [work for work in works if work.rest]
        self._begun: set[str] = set()
        self._deleted = frozenset(
            resource_of(step) for work in works for step in work.rest if isinstance(step, Removal)
        )
        self._steps: dict[str, list[Step]] = {}
        for step in (step for work in works for step in work.rest):
            self._steps.setdefault(resource_of(step), []).append(step)

    def run(self) -> None:
        """Carry the steps out.

        Raises:
            AnabranchError: nothing was changed, but topics of our own state.
        """
        if not all([work.begin() for work in self._works]):
            self._skip_all("our own topics could not be made on every cluster of the data centre")
            return
        wanted = self._look_again()
        with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
            ready = self._prepare(wanted, Path(folder))
            planned = self._preview(ready)
            if planned is None:
                return
            self._refuse_surprises(planned, wanted, ready.settled.changing)
            if not self._intend():
                return
            done, failures = self._bring_up(ready)
        for work in self._works:
            self._conclude(work, done, failures, ready.settled.known)

    def _look_again(self) -> Wanted:
        """Observe the data centre whole, and make sure that what it asks for now is what the plan says.

        What is before it is observed too: the plan may copy on what it makes there, whoever of the two comes first.

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
            if not is_as_planned(found.get(alias, ()), steps):
                where = topology.clusters[alias].where
                raise Refused(Problem("AB407", where, "has changed since the plan was made", _AGAIN))
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
        )

    def _prepare(self, wanted: Wanted, folder: Path) -> _Ready:
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
        self._hand_over(record, path, sorted(settled.imported))
        parallel = max(LEAST_PARALLEL, min(MOST_PARALLEL, len(wanted.topics) + len(wanted.acls)))
        return _Ready(stack, settled, record, path, parallel)

    def _hand_over(self, record: Path, path: Path, imported: Iterable[str]) -> None:
        Handover(str(record), self._answering, tuple(imported), tuple(sorted(self._deleted))).write(path)

    def _files(self) -> str:
        """Return the topology's files as the program reads them: relative, as a project may be cloned anywhere."""
        root = self._setting.project.resolve()
        paths = [os.path.relpath(path.resolve(), root) for path in self._setting.files]
        return paths[0] if len(paths) == 1 else json.dumps(paths)

    def _preview(self, ready: _Ready) -> Events | None:
        """Return what Pulumi says it would do; None where it was stopped, as nothing may be changed any more.

        Raises:
            AnabranchError: Pulumi cannot tell.
        """
        try:
            with self._setting.command.heeding(self._must_end):
                return ready.stack.preview(ready.parallel)
        except AnabranchError:
            if self.lost is None:
                raise
            self._skip_all(self.lost.message)
            return None

    def _refuse_surprises(self, planned: Events, wanted: Wanted, changing: frozenset[str]) -> None:
        """Make sure that Pulumi would do nothing that no step says.

        Raises:
            Refused: AB441, it would.
        """
        expected = Expected(
            created=self._resources_of(CreateTopic),
            changed=self._resources_of(AddPartitions) | self._resources_of(AlterConfig) | changing,
            acls=self._resources_of(GrantAcl) | wanted.standing_acls(),
            revoked=frozenset(acl_name(alias, binding) for alias, binding in wanted.revoked),
        )
        problems = [
            Problem(
                "AB441",
                f"Pulumi stack {self._name}, {name}",
                f"Pulumi would {operation.value} it{_for(planned.differing[name])}, and no step of the plan says so",
                "see what `pulumi preview` says about it, or use --provisioner direct",
            )
            for name, operation in sorted(expected.surprises(planned.planned).items())
        ]
        if problems:
            raise Refused(problems)

    def _resources_of(self, kind: type[Step]) -> frozenset[str]:
        """Return the names of the resources that steps of a kind are about."""
        return frozenset(resource_of(step) for work in self._works for step in work.of(kind))

    def _intend(self) -> bool:
        """Record what is about to be ours; where that fails, or nothing may be changed, Pulumi is not let loose."""
        for work in self._busy:
            if not work.may_go_on(work.rest):
                self._skip_all("another cluster of the data centre could not be worked on")
                return False
            grants = work.of(GrantAcl)
            problem = Grants(work.cluster, self._setting.plan.topology).intend(grants) if grants else None
            if problem is not None:
                work.fail(grants, problem)
            if problem is not None or not work.intend(work.of(CreateTopic)):
                self._skip_all("what is ours could not be recorded on every cluster of the data centre")
                return False
        return all([self._withdraw(work) for work in self._busy])

    def _withdraw(self, work: Work) -> bool:
        """Take back ACLs that would cover what Pulumi is about to make; where that fails it is not let loose."""
        if not (steps := work.before_topics()):
            return True
        failed = Grants(work.cluster, self._setting.plan.topology).change(steps).failed
        work.outcome.failed += failed
        if failed:
            self._skip_all("an ACL that covers what is to be made could not be revoked")
        return not failed

    def _bring_up(self, ready: _Ready) -> tuple[set[str], dict[str, Problem]]:
        """Let Pulumi work; return the names of what is done, and why other resources failed.

        What was imported and is to be changed takes a second run: a release of Pulumi imports nothing that differs, and
        another one changes it at once, whether or not that was planned.

        Raises:
            AnabranchError: nothing was begun.
        """
        later = ready.settled.changing
        events = self._up(ready, later)
        done, failures = events.done - later, dict(events.failures)
        if later and not failures and self.lost is None:
            self._hand_over(ready.record, ready.path, ())
            events = self._up(ready, frozenset())
            done |= events.done
            failures |= events.failures
        return done, {name: self._failed(ready.stack, name, words) for name, words in failures.items()}

    def _up(self, ready: _Ready, later: frozenset[str]) -> Events:
        events = Events(lambda name: None if name in later else self._heard(name))
        try:
            with self._setting.command.heeding(self._must_end):
                ready.stack.up(ready.parallel, events)
        except AnabranchError as error:
            # After the first run, with something begun, or where we stopped it, the outcome tells.
            self._begun |= events.begun
            is_told = events.begun or events.done or events.failures or ready.settled.changing - later
            if not is_told and self.lost is None:
                raise
            self.lost = self.lost or error.problems[0]
        else:
            # Whatever a lost event would have said: Pulumi has done everything.
            events.done |= self._steps.keys()
        return events

    def _heard(self, name: str) -> None:
        """Tell of steps that Pulumi has done, and stop it when nothing may be changed any more."""
        for step in self._steps.get(name, ()):
            self._progress(step)
        if self._must_end():
            self._setting.command.interrupt()

    def _must_end(self) -> bool:
        """Tell whether nothing may be changed any more."""
        try:
            for work in self._busy if self.lost is None else ():
                self._setting.may_change(work.cluster.alias)
        except AnabranchError as error:
            self.lost = error.problems[0]
        return self.lost is not None

    def _failed(self, stack: Stack, name: str, words: str) -> Problem:
        cluster = self._setting.topology.clusters[name.partition("/")[0]]
        where = f"{cluster.where}, {name.partition('/')[2]}"
        if "already exists" in words:
            return Problem("AB315", where, "was made by somebody else since the plan", "plan again")
        return stack.masked(Problem("AB314", where, words, "mend what it names, then apply again"))

    def _conclude(self, work: Work, done: set[str], failures: Mapping[str, Problem], known: frozenset[str]) -> None:
        """Confirm what Pulumi has done on one cluster, and tell what became of every step."""
        reached: list[Step] = []
        removals = [step for step in work.rest if isinstance(step, Removal)]
        for step in work.rest:
            if isinstance(step, Removal):
                continue
            name = resource_of(step)
            is_without = isinstance(step, RecordOwnership) or (isinstance(step, RevokeAcl) and name not in known)
            if name in failures or name in done or is_without:
                reached.append(step)
            else:
                why = self.lost.message if self.lost else _NOT_REACHED
                work.skip([step], f"{why}; {_NOT_KNOWN}" if name in self._begun else why)
        problems = {id(step): failures[resource_of(step)] for step in reached if resource_of(step) in failures}
        work.settle([step for step in reached if isinstance(step, TopicChange)], problems)
        for step in reached:
            if id(step) in problems and not isinstance(step, TopicChange):
                work.fail([step], problems[id(step)])
        fine = [step for step in reached if id(step) not in problems]
        if made := [step for step in fine if isinstance(step, CreateTopic)]:
            work.confirm(made)
        grants = Grants(work.cluster, self._setting.plan.topology)
        granted = [step for step in fine if isinstance(step, GrantAcl)]
        # Asked once more, a revocation changes nothing; and what the stack did not know is revoked here.
        revoked = [step for step in fine if isinstance(step, RevokeAcl)]
        for part in ([grants.confirm(granted)] if granted else []) + ([grants.change(revoked)] if revoked else []):
            work.take_over(part)
        if self.lost is not None and work.outcome.is_complete:
            work.skip(removals, self.lost.message)
        else:
            remove_topics(work, removals, self._setting.plan.topology)

    def _skip_all(self, why: str) -> None:
        for work in self._works:
            work.skip(work.open, why)


def _for(fields: Sequence[str]) -> str:
    return f" ({', '.join(fields)})" if fields else ""


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
