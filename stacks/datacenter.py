"""The steps of one data centre, carried out by its stack: what Pulumi may do, and what came of each step after."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Problem, Refused
from reconciler.model.planning.removals import Removal
from reconciler.model.planning.steps import (
    AddPartitions,
    AlterConfig,
    CreateTopic,
    GrantAcl,
    RecordOwnership,
    RevokeAcl,
    Step,
    TopicChange,
)
from reconciler.provision.grants import Grants
from reconciler.provision.removal import remove_topics
from reconciler.provision.work import Progress, Work
from stacks.events import Events, Expected
from stacks.names import acl_name
from stacks.planned import resource_of
from stacks.preparing import Preparation, Ready, Setting
from stacks.stack import Stack
from stacks.state import Wanted

_NOT_REACHED = "Pulumi had ended before it came to it"
_NOT_KNOWN = "it was begun, and may be done: apply again, which finds what is there"


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
        self._preparation = Preparation(setting, name, works)
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
        wanted = self._preparation.look_again()
        with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
            ready = self._preparation.prepare(wanted, Path(folder))
            planned = self._preview(ready)
            if planned is None:
                return
            self._refuse_surprises(planned, wanted, ready.settled.changing)
            if not self._intend():
                return
            done, failures = self._bring_up(ready)
        for work in self._works:
            self._conclude(work, done, failures, ready.settled.known)

    def bring_in_line(self) -> str:
        """Have the stack hold what stands, where nothing is to be done at the clusters.

        Returns:
            What was changed of the stack; empty where it was right.

        Raises:
            AnabranchError: the stack is not as it should be; nothing but its state was changed.
        """
        wanted = self._preparation.look_again()
        with tempfile.TemporaryDirectory(prefix="anabranch-") as folder:
            ready = self._preparation.prepare(wanted, Path(folder))
            settled = ready.settled
            if settled.missing:
                planned = ready.stack.preview(ready.parallel)
                self._refuse_surprises(planned, wanted, frozenset())
                _, failures = self._bring_up(ready)
                if problems := [*failures.values(), *([self.lost] if self.lost else [])]:
                    raise EnvironmentFault(problems)
        counts = {"forgotten": settled.forgotten, "corrected": settled.corrected, "added": len(settled.missing)}
        return ", ".join(f"{count} {word}" for word, count in counts.items() if count)

    def _preview(self, ready: Ready) -> Events | None:
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

    def _bring_up(self, ready: Ready) -> tuple[set[str], dict[str, Problem]]:
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
            self._preparation.hand_over(ready.record, ready.path, ())
            events = self._up(ready, frozenset())
            done |= events.done
            failures |= events.failures
        return done, {name: self._failed(ready.stack, name, words) for name, words in failures.items()}

    def _up(self, ready: Ready, later: frozenset[str]) -> Events:
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
