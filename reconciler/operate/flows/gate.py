"""Which flows `replicate` may run: those into targets where its declaration is in force, or where nothing ever was.

The gate reads the journals every second, also while flows run. Where another declaration is in force, these flows wait,
and so does each flow that is failed over. The files are read anew when they change, and overrides that are in force
are laid over them. The reporter and the status topic receive what is waited for.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from reconciler.model.base.errors import AnabranchError, DeclaredInputError, Problem, Refused
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.declaration import DeclarationHistory, digest_into
from reconciler.model.recorded.failed_flows import failed_flows, why_resting
from reconciler.model.recorded.failover import FailedOver
from reconciler.model.tasks.status import TaskStatus
from reconciler.operate.flows.overrides import with_overrides
from reconciler.operate.flows.posts import Post, Repeating
from reconciler.operate.reporter import SILENT, Reporter
from reconciler.operate.targets import InvalidArgument, chosen_targets
from reconciler.replicator.driver.driver import new_run

_LOOK_EVERY = 1.0
_SAY_EVERY = 60.0
_SAID_IN_STATUS = "until its declaration is in force [AB411]"
_SAID_OF_START = "until Spark has started"

Resting = dict[str, FailedOver | None]
"""By flow the record of a failover, None where only its file declares it."""


class Passed(NamedTuple):
    """What may run.

    Attributes:
        topology: the whole declaration, in which the flows are as their files declare them.
        targets: aliases of the targets where it may.
        flows: those into them that are not failed over.
    """

    topology: Topology
    targets: tuple[str, ...]
    flows: tuple[Flow, ...]


class FlowGate:
    """Compares the declaration of some files with what is in force at its targets.

    Args:
        files: the topology files.
        clusters: what `--clusters` names.
        waits: whether flows that may not run are waited for; else they are an error.
        reporter: receives what waits, what runs and why.
        overrides: whether what is in force over the files counts; else it is another declaration than theirs.

    Attributes:
        topology: the declaration that this process has.

    Raises:
        DeclaredInputError: with every problem of every file.
    """

    def __init__(
        self,
        files: Sequence[Path],
        clusters: Sequence[str] | None,
        waits: bool,
        reporter: Reporter = SILENT,
        overrides: bool = True,
    ) -> None:
        self._reporter = reporter
        self._takes_overrides = overrides
        self._files = tuple(files)
        self._clusters = clusters
        self._waits = waits
        self._versions = _versions(self._files)
        self.topology = self._load()
        self._declared = self._newest = self.topology
        self._standings: dict[str, DeclarationHistory] = {}
        self._passed: set[str] = set()
        self._resting: Resting = {}
        self._next_look = self._next_newest = 0.0
        self._run = new_run()
        self._starting: tuple[str, ...] = ()
        self._repeating: Repeating | None = None
        self._posts: dict[Cluster, Post] = {}
        self._digests: dict[str, tuple[Topology, str]] = {}

    def _load(self) -> Topology:
        from reconciler import declare

        return declare.load(self._files, warn=lambda warning: self._reporter.warn((warning,)))

    @property
    def targets(self) -> tuple[str, ...]:
        """Aliases of the targets into which this process is to run flows."""
        return chosen_targets(self.topology, self._clusters)

    def passed(self) -> Passed:
        """Wait until some flows may run, and return them.

        Raises:
            Refused: AB411, another declaration is in force, or AB435, all flows are failed over; and `waits` is false.
            Unreachable: AB310, a target does not answer.
            EnvironmentFault: AB311, a target refuses to be asked.
        """
        self._end_repeating()
        while True:
            self._take_newest()
            objections = self._objections(self.topology)
            against = [objection for objection in objections.values() if objection is not None]
            if against and not self._waits:
                raise Refused(against)
            self._resting, self._starting = self.failed_over(), ()
            for post in self._posts.values():
                post.has_moved = False
            self._tell(objections)
            self._passed = _passing(objections)
            targets = tuple(alias for alias in self.targets if alias in self._passed)
            flows = tuple(flow for flow in self.topology.flows_into(targets) if flow.name not in self._resting)
            if flows:
                for alias in dict.fromkeys(flow.target for flow in flows):
                    self._tell_passed(alias)
                return Passed(self.topology, targets, flows)
            if self._passed and not self._waits:
                resting = self._said_of_resting(self.topology.flows_into(tuple(self._passed)))
                raise Refused([problem for _, problem in resting])
            time.sleep(_LOOK_EVERY)

    def is_superseded(self) -> bool:
        """Return whether other flows may run now than those that were let pass; reads the journals once a second."""
        now = time.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + _LOOK_EVERY
        self._end_repeating()
        return self._has_changed()

    def _has_changed(self) -> bool:
        """Return whether other flows may run now, and report what waits, or why what runs is drained."""
        before = self.topology
        try:
            if len(self._passed) < len(self._objections(self.topology)):
                self._take_newest()
            objections = self._objections(self.topology)
            resting = self.failed_over()
        except AnabranchError:
            # A cluster that cannot be read changes nothing yet.
            return False
        passing = _passing(objections)
        news = {flow.name for flow in self.topology.flows_into(passing)} & (self._resting.keys() ^ resting.keys())
        moved = [post for post in self._posts.values() if post.has_moved]
        if self.topology is before and self._passed == passing and not news and not moved:
            self._resting = resting
            self._tell(objections)
            return False
        for alias in sorted(self._passed):
            if objection := objections.get(alias):
                self._reporter.note(f"{alias}: {objection.message}: its flows are drained")
        if moved:
            self._reporter.note("the journals were moved to topics of their own: flows are drained")
        for flow in sorted(news & resting.keys()):
            self._reporter.note(f"flow {flow}: {why_resting(flow, resting[flow])}; it is drained")
        for flow in sorted(news - resting.keys()):
            self._reporter.note(f"flow {flow}: failed over no longer; it runs again")
        return True

    def announce(self, flows: Sequence[Flow]) -> bool:
        """Post in the status topics that flows begin, until their tasks are `heard`; return whether they still may.

        Readers of the status topic then find the run before its first task publishes: Spark takes a while to start.
        """
        self._starting = tuple(flow.name for flow in flows)
        if self._has_changed():
            return False
        for post in self._posts.values():
            post.flush()
        # A failover may have begun that read the status topic just before that was posted.
        if self._has_changed():
            return False
        self._repeating = Repeating(tuple(self._posts.values()), _LOOK_EVERY)
        self._repeating.start()
        return True

    def heard(self, words: Collection[TaskStatus]) -> None:
        """Stop posting for flows whose tasks publish their own status.

        Args:
            words: the newest status of each task of the run, its driver included.
        """
        if self._starting:
            speaking = Counter(word.flow for word in words if not word.is_held)
            # A driver whose tasks cannot begin publishes that instead.
            told = {word.flow for word in words if word.failing or speaking[word.flow] >= word.tasks > 0}
            self._starting = tuple(flow for flow in self._starting if flow not in told)

    def _end_repeating(self) -> None:
        if self._repeating is not None:
            self._repeating.end()
            self._repeating = None

    def failed_over(self) -> Resting:
        """Return which flows of this process are failed over; errors are those of `passed` about targets."""
        return {
            name: state
            for alias in self.targets
            if (flows := self.topology.flows_into((alias,)))
            for name, state in failed_flows(flows, self._post(self.topology, alias).failed_over()).items()
        }

    def close(self) -> None:
        """Withdraw what was posted in status topics, and close all connections."""
        self._end_repeating()
        for post in self._posts.values():
            post.close()

    # --- what is in force, and what the files declare ----------------------------------------------------------------

    def _objections(self, topology: Topology) -> dict[str, Problem | None]:
        """Return, for each target that flows lead into, what stands against running them."""
        return {
            alias: self._post(topology, alias)
            .history()
            .objection(self._digest(topology, alias), topology.clusters[alias].where)
            for alias in chosen_targets(topology, self._clusters)
            if topology.flows_into((alias,))
        }

    def _said_of_resting(self, flows: Iterable[Flow]) -> list[tuple[Flow, Problem]]:
        """Return which of some flows are failed over, and the problem that is reported for each."""
        remedy = "`anabranch failback` ends that; where no group was moved, take failed-over out of the file"
        return [
            (flow, Problem("AB435", f"flow {flow.name}", why_resting(flow.name, self._resting[flow.name]), remedy))
            for flow in flows
            if flow.name in self._resting
        ]

    def _digest(self, topology: Topology, alias: str) -> str:
        """Return the digest of a declaration for a target; it is asked for every second."""
        known = self._digests.get(alias)
        if known is None or known[0] is not topology:
            known = self._digests[alias] = topology, digest_into(topology, alias)
        return known[1]

    def _post(self, topology: Topology, alias: str) -> Post:
        cluster = topology.clusters[alias]
        if cluster not in self._posts:
            self._posts[cluster] = Post(cluster, topology.name)
        return self._posts[cluster]

    def _take_newest(self) -> None:
        """Read files that have changed, and go by them where otherwise nothing could run, or less."""
        versions = _versions(self._files)
        if versions != self._versions:
            self._versions, self._next_newest = versions, 0.0
            try:
                newest = self._load()
                # Files without a flow for this process are as good as none.
                if newest.flows_into(chosen_targets(newest, self._clusters)):
                    self._declared = self._newest = newest
                    self._standings = {}
            except DeclaredInputError as error:
                self._reporter.warn(error.problems)
            except InvalidArgument as error:
                self._reporter.note(error.message)
        if time.monotonic() >= self._next_newest:
            now = _passing(self._objections(self.topology))
            try:
                self._lay_over()
                then = now if self._newest is self.topology else _passing(self._objections(self._newest))
            except AnabranchError as error:
                # A target that only the newer files name must not stop the checks of what runs, nor end the wait.
                self._reporter.warn(error.problems)
                self._next_newest = time.monotonic() + _SAY_EVERY
                return
            if not now or now < then:
                self.topology = self._newest

    def _lay_over(self) -> None:
        """Lay over the newest files what of overrides is in force now, where that is another than at the last look."""
        standings = {
            alias: self._post(self._declared, alias).history()
            for alias in chosen_targets(self._declared, self._clusters)
            if self._takes_overrides and self._declared.flows_into((alias,))
        }
        if standings != self._standings:
            self._standings = standings
            newest = with_overrides(self._declared, standings)
            self._newest = newest if newest.flows_into(chosen_targets(newest, self._clusters)) else self._declared

    # --- what is reported --------------------------------------------------------------------------------------------

    def _tell_passed(self, alias: str) -> None:
        post, digest = self._post(self.topology, alias), self._digest(self.topology, alias)
        in_force = post.history().in_force or "nothing was ever put in force by `anabranch apply`"
        self._reporter.note(f"{alias}: {in_force}; what the files declare runs, digest {digest}")
        for holder in post.holders(self.topology.flows_into((alias,)), digest):
            self._reporter.note(f"{alias}: {holder}; its partitions are taken over when it ends")

    def _tell(self, objections: Mapping[str, Problem | None]) -> None:
        """Post in the status topics which flows wait and why, and report that once a minute at most."""
        aliases = {self.topology.clusters[alias]: alias for alias in objections}
        for cluster, post in self._posts.items():
            alias = aliases.get(cluster)
            if alias is None:
                post.say(())
                continue
            flows, digest = self.topology.flows_into((alias,)), self._digest(self.topology, alias)
            objection = objections[alias]
            resting = [] if objection else self._said_of_resting(flows)
            waiting = [(flow, _SAID_IN_STATUS) for flow in flows] if objection else [(f, p.message) for f, p in resting]
            said = [TaskStatus.of_process(flow, self._run, digest, waiting=why) for flow, why in waiting]
            starting = [flow for flow in flows if flow.name in self._starting and flow.name not in self._resting]
            said += [TaskStatus.of_process(flow, self._run, digest, waiting=_SAID_OF_START) for flow in starting]
            post.say([replace(word, starting=word.waiting == _SAID_OF_START) for word in said])
            self._reporter.warn([problem for _, problem in resting if post.is_news(problem)])
            if objection and post.is_news(objection):
                held = "".join(f"; {holder}" for holder in post.holders(flows, digest))
                self._reporter.warn((replace(objection, message=objection.message + held),))


def _passing(objections: Mapping[str, Problem | None]) -> set[str]:
    return {alias for alias, objection in objections.items() if objection is None}


def _versions(files: Iterable[Path]) -> tuple[tuple[int, int], ...]:
    """Return what changes when a file is written; standard input and a file that is gone are never new."""
    found = []
    for file in files:
        try:
            about = file.stat()
        except OSError:
            found.append((0, 0))
        else:
            found.append((about.st_mtime_ns, about.st_size))
    return tuple(found)
