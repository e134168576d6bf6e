"""The reconcile loop of one flow: finds new topics and partitions, has their copies made, and announces them.

`driver` starts one for each flow, in a thread of its own. Remote topics are made by a function of the caller. Nothing
is ever deleted, no failure ends the run, and a task keeps what it has.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reconciler.model.base.errors import AnabranchError
from reconciler.model.base.files import write_private
from reconciler.model.names.own_names import syncs_topic
from reconciler.model.planning.outcome import Growth
from reconciler.model.planning.steps import AclChange, AddPartitions, AlterConfig, CreateTopic, GrantAcl
from reconciler.model.recorded.pauses import PauseScope
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.driver import discovery
from reconciler.replicator.driver.periodic import Periodic
from reconciler.replicator.partition.shares import Place, Shares
from reconciler.state import control, syncs
from reconciler.state.ownership import Ownership

Reconcile = Callable[[str], Growth]
"""Makes what the remote topics of the named flow lack, and returns what was done; may raise an AnabranchError."""

# Seconds between passes while a flow has no topics.
_LOOK_EVERY = 2.0
# A pause between passes lasts at least this part of the usual one.
_SHORTEST = 4
_END_PATIENCE = 5.0
_REPEAT_SECONDS = 600.0
_SYNCS_SECONDS = 5.0


class Refresh(Periodic):
    """Maintains the topics and shares of one flow in one run.

    Args:
        spec: the flow.
        reconcile: makes remote topics and returns what must not be copied; None makes none.
        warn: called with each new problem, from this thread.
        note: called with everything that was made, likewise.
        file: where the shares are kept for the planner of rounds, which may be a process of Spark's on this machine;
            its folder must exist.

    Attributes:
        left_out: by topic, why it is not copied although the flow takes it.
        not_enlarged: by topic, the first partition that is not copied, as its copy is not to be enlarged.
    """

    def __init__(
        self,
        spec: FlowSpec,
        reconcile: Reconcile | None,
        warn: Callable[[str], None],
        note: Callable[[str], None],
        file: Path | None = None,
    ) -> None:
        super().__init__("topics", spec.flow.name, warn, _END_PATIENCE)
        self._spec = spec
        self._reconcile = reconcile
        self._note = note
        self._file = file
        self._shares = Shares()
        self.left_out: Mapping[str, str] = {}
        self.not_enlarged: Mapping[str, int] = {}
        self._known: set[str] = set()
        self._translated: frozenset[str] = frozenset()
        self._first: frozenset[tuple[str, int]] | None = None
        self._has_syncs = False
        # Originals whose copies were made, or enlarged, and that tasks were not notified of yet.
        self._made: list[str] = []
        self._grown: list[str] = []
        self._announced: dict[str, Any] = {}
        self._announced_at = 0.0

    def _pause(self) -> float:
        usual = self._spec.flow.refresh_interval
        if not (self._shares.topics or self.left_out):
            return min(usual, _LOOK_EVERY)
        # At the same moments as other flows with that interval: one look at their clusters serves all of them.
        left = usual - time.monotonic() % usual
        return left if left > usual / _SHORTEST else left + usual

    def _look(self, troubles: list[str]) -> bool:
        try:
            places = discovery.matching(self._spec)
        except AnabranchError as error:
            self._announce(trouble=str(error))
            raise
        if self._first is None:
            self._first = frozenset((place.topic, place.partition) for place in places)
        self._provide(places, troubles)
        self._leave_out_nameless(places, troubles)
        wanted = [self._seen(place) for place in places if self._is_copied(place)]
        if not self._has_syncs_for(wanted, troubles):
            wanted = [place for place in wanted if place.offsets == "identical"]
        self._shares = self._shares.extended(wanted, self._spec.flow.tasks)
        self._announce()
        # Tasks that wait for these topics retry at once; partitions that run stay in the topic that was there before.
        for topics, parked_only in ((self._made, False), (self._grown, True)):
            if topics:
                scopes = [PauseScope(self.flow, topic) for topic in topics]
                control.restart(self._spec.target, self._spec.topology, scopes, parked_only=parked_only)
                topics.clear()
        there = {place.topic for place in places}
        for topic in sorted(self._shares.topics.keys() - there):
            remote = self._shares.topics[topic].remote
            troubles.append(f"topic {topic} is gone from {self._spec.source.alias}; its copy {remote} stays as it is")
        return True

    def _has_syncs_for(self, places: Sequence[Place], troubles: list[str]) -> bool:
        """Make the topic for offset syncs, which only copies with translated offsets need."""
        if not self._has_syncs and any(place.offsets == "translated" for place in places):
            source = self._spec.flow.source
            try:
                lacking = syncs.ensure(self._spec.target, source, _SYNCS_SECONDS)
            except AnabranchError as error:
                name = syncs_topic(source)
                troubles += [f"copies with translated offsets wait for topic {name}: {one}" for one in error.problems]
                return False
            if lacking is not None:
                self._warn(f"flow {self.flow}: {lacking}")
            self._has_syncs = True
        return True

    def _is_copied(self, place: Place) -> bool:
        if place.topic not in self._known or place.topic in self.left_out:
            return False
        return place.partition < self.not_enlarged.get(place.topic, place.partition + 1)

    @property
    def waiting(self) -> Mapping[str, str]:
        """Why partitions that no task has are not copied, by topic."""
        return dict.fromkeys(self.not_enlarged, "its copy is not enlarged: beyond a limit of the flow [AB237]") | dict(
            self.left_out
        )

    def _seen(self, place: Place) -> Place:
        """Return a partition with its offsets mode, and whether it appeared after the first pass."""
        offsets = "translated" if place.topic in self._translated else place.offsets
        is_late = self._first is not None and (place.topic, place.partition) not in self._first
        return place._replace(offsets=offsets, is_late=is_late)

    def _provide(self, places: Sequence[Place], troubles: list[str]) -> None:
        """Have the remote topics made; note the originals of those that were made and that have grown."""
        if self._reconcile is None or not places:
            self._known = {place.topic for place in places}
            self.left_out = {}
            self._translated = self._pinned(places)
            return
        try:
            growth = self._reconcile(self.flow)
        except AnabranchError as error:
            # A remote topic that could not be checked may belong to another owner: it waits.
            troubles += [f"cannot look after remote topics: {problem}" for problem in error.problems]
            return
        self._known = {place.topic for place in places}
        self.left_out, outcome = growth.not_copied, growth.outcome
        self.not_enlarged = {topic: count for one in growth.beyond for topic, count in one.not_enlarged}
        self._translated = self._pinned(places) if growth.translated is None else growth.translated
        troubles += [f"cannot look after remote topics: {problem}" for problem in growth.problems]
        troubles += [f"topic {topic} is not copied: {why}" for topic, why in growth.left_out.items()]
        troubles += [f"topics are left out: {one.problem}" for one in growth.beyond]
        troubles += [f"nothing can be done for topic {topic} now: {why}" for topic, why in growth.hindered.items()]
        troubles += [f"cannot make remote topics: {failure.problem}" for failure in outcome.failed]
        troubles += sorted({f"cannot make remote topics: {skipped.why}" for skipped in outcome.skipped})
        for step in outcome.done:
            if isinstance(step, AlterConfig):
                self._note(f"flow {self.flow}: set {', '.join(one.key for one in step.changes)} of {step.name}")
            elif isinstance(step, AclChange):
                verb = "granted" if isinstance(step, GrantAcl) else "revoked"
                self._note(f"flow {self.flow}: {verb} {step.name}")
            elif isinstance(step, CreateTopic | AddPartitions):
                verb, news = ("made", self._made) if isinstance(step, CreateTopic) else ("enlarged", self._grown)
                self._note(f"flow {self.flow}: {verb} {step.name}, {step.topic.partitions} partitions")
                news.append(step.topic.source_topic)

    def _pinned(self, places: Sequence[Place]) -> frozenset[str]:
        """Return the original topics whose copies were begun with translated offsets, by their owners' records.

        Raises:
            AnabranchError: they cannot be read.
        """
        if self._spec.flow.offsets != "auto" or not places:
            return frozenset()
        owned = Ownership(self._spec.target, self._spec.topology).read()
        there = {place.topic: owned.get(place.remote) for place in places}
        return frozenset(name for name, record in there.items() if record and record.offsets == "translated")

    def _leave_out_nameless(self, places: Sequence[Place], troubles: list[str]) -> None:
        """Leave out topics whose copies have no name, or another topic's."""
        others = [place for place in places if place.topic not in self.left_out]
        nameless = discovery.without_name(self._spec.flow, others, self._shares)
        troubles += [f"topic {topic} is not copied: {why}" for topic, why in nameless.items()]
        self.left_out = {**self.left_out, **nameless}

    def _announce(self, trouble: str | None = None) -> None:
        """Announce the shares when they have changed, and at intervals: a run without announcements counts as dead."""
        value, now = self._shares.to_json() | {"trouble": trouble}, time.monotonic()
        is_due = now >= self._announced_at + _REPEAT_SECONDS
        if self._over.is_set() or (value == self._announced and not is_due):
            return
        self._keep(value)
        control.announce(self._spec.target, self._spec.seal, value)
        self._announced, self._announced_at = value, now

    def _keep(self, shares: Mapping[str, Any]) -> None:
        """Write the shares to their file, whole or not at all: a process of Spark's may read it at any time."""
        if self._file is not None:
            write_private(self._file, json.dumps(shares))
