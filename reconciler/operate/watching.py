"""Reads the status topics of some targets, once or again and again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.declaration import MOVED
from reconciler.model.tasks.status import TaskStatus
from reconciler.operate.targets import chosen_targets

if TYPE_CHECKING:
    from reconciler.checkpoints.service.last_syncs import LastLooks
    from reconciler.model.declared.groups import LastLook
    from reconciler.model.recorded.declaration import InForce
    from reconciler.model.recorded.failover import FailedOver
    from reconciler.model.recorded.pauses import Pauses
    from reconciler.report.status.summary import FlowSummary
    from reconciler.state.control import PauseRules
    from reconciler.state.declarations import Declarations
    from reconciler.state.failovers import Failovers
    from reconciler.state.liveness import Liveness
    from reconciler.state.status import StatusReader

# How long a target that answered at the last look may take to answer again.
_PATIENCE = 5.0


@dataclass(frozen=True)
class StatusView:
    """The status of flows at one moment.

    Attributes:
        now: when, in seconds since 1970.
        flows: those whose target was read.
        statuses: the newest status of each of their tasks, with the time at which it was read.
        failures: by alias, why a target was not read.
        in_force: by alias, which declaration is in force there, where one is and it was read.
        failed_over: by alias, which flows are on record there as failed over, where that was read.
        last_looks: by flow, when its groups were last copied, where they were and it was read; None where
            that cannot be read.
        unheard: by alias, why that cannot be read there.
        pauses: by alias, what is paused there of flows that nothing runs, where that was read.
    """

    now: float
    flows: tuple[Flow, ...]
    statuses: tuple[TaskStatus, ...]
    failures: dict[str, AnabranchError]
    in_force: dict[str, InForce] = field(default_factory=dict)
    failed_over: dict[str, dict[str, FailedOver]] = field(default_factory=dict)
    last_looks: dict[str, LastLook | None] = field(default_factory=dict)
    unheard: dict[str, AnabranchError] = field(default_factory=dict)
    pauses: dict[str, Pauses] = field(default_factory=dict)

    def summaries(self) -> list[FlowSummary]:
        """Return the figures of each flow: those of `status`, the metrics and the service alike."""
        from reconciler.report.status.summary import summarise, with_pauses

        found = summarise(self.flows, self.statuses, self.now, self.in_force, self.last_looks, self.failed_over)
        return with_pauses(found, self.pauses)


class Lookout:
    """Reads the status topics of some targets; connections are kept between reads, and made as targets answer.

    Args:
        topology: the declared topology.
        targets: aliases of the targets.
        with_in_force: whether it also reads which declaration is in force, and which flows are failed over.
        with_groups: whether it also reads when groups were last looked at, of flows that take some along.
        with_disabled: whether flows count that are not enabled; their targets need not answer.
    """

    def __init__(
        self,
        topology: Topology,
        targets: Sequence[str],
        with_in_force: bool = False,
        with_groups: bool = False,
        with_disabled: bool = False,
    ) -> None:
        self._topology = topology
        self._with_disabled = with_disabled
        self._targets = targets
        self._readers: dict[str, StatusReader] = {}
        self._hearings: dict[str, Liveness] = {}
        self._with_in_force = with_in_force
        self._declarations: dict[str, Declarations] = {}
        self._failovers: dict[str, Failovers] = {}
        self._rules: dict[str, PauseRules] = {}
        self._with_groups = with_groups
        self._heartbeats: dict[str, LastLooks] = {}
        # Targets whose journals were found to be moved to topics of their own.
        self._moved: set[str] = set()

    def look(self) -> StatusView:
        """Read all targets; for two seconds more where nothing else shows whether tasks live."""
        from reconciler.observe.reach import unreachable_among
        from reconciler.state.liveness import await_sure

        while self._moved:
            self._go_home(self._moved.pop())
        clusters = self._topology.clusters
        failures = unreachable_among([clusters[alias] for alias in self._targets if alias not in self._readers])
        self._hear(failures)
        await_sure(self._is_in_doubt, lambda: self._hear(failures))
        if self._with_disabled:
            needed = {flow.target for flow in self._topology.flows if flow.enabled}
            failures = {alias: error for alias, error in failures.items() if alias in needed}
        flows = tuple(flow for flow in self._flows if flow.target not in failures)
        in_force = self._in_force() if self._with_in_force else {}
        failed_over = self._failed_over() if self._with_in_force else {}
        last_looks, unheard = self._last_looks(flows) if self._with_groups else ({}, {})
        now = time.time()
        shown = self._shown(now)
        pauses = self._pauses(flows, {word.flow for word in shown if word.is_live(now)}) if self._with_in_force else {}
        return StatusView(now, flows, shown, failures, in_force, failed_over, last_looks, unheard, pauses)

    @property
    def _flows(self) -> tuple[Flow, ...]:
        return tuple(
            flow
            for flow in self._topology.flows
            if flow.target in self._targets and (flow.enabled or self._with_disabled)
        )

    def _hear(self, failures: dict[str, AnabranchError]) -> None:
        """Take in what is new at the targets that have not failed, and why others do."""
        from reconciler.state.liveness import Liveness
        from reconciler.state.status import StatusReader

        for alias in self._targets:
            if alias in failures:
                continue
            reader = self._readers.pop(alias, None) or StatusReader(self._topology.clusters[alias], self._topology.name)
            try:
                words = [word for word in reader.current(_PATIENCE) if word.is_of(self._topology.name)]
            except AnabranchError as error:
                reader.close()
                failures[alias] = error
                self._hearings.pop(alias, None)
            else:
                self._readers[alias] = reader
                self._hearings.setdefault(alias, Liveness()).update(words)

    def _shown(self, now: float) -> tuple[TaskStatus, ...]:
        from reconciler.state.status import newest_runs

        heard = [word for alias in self._readers for word in self._hearings[alias].on_own_clock()]
        return tuple(newest_runs(heard, now))

    def _is_in_doubt(self) -> bool:
        shown = self._shown(time.time())
        return any(self._hearings[alias].doubtful(shown) for alias in self._readers)

    def _last_looks(self, flows: Sequence[Flow]) -> tuple[dict[str, LastLook | None], dict[str, AnabranchError]]:
        """Return when groups of flows were last looked at, and by target why that cannot be read."""
        from reconciler.checkpoints.service.last_syncs import LastLooks
        from reconciler.state.journals.home import journals

        found: dict[str, LastLook | None] = {}
        unheard: dict[str, AnabranchError] = {}
        taking = [flow for flow in flows if flow.groups.include and flow.target in self._readers]
        for alias in dict.fromkeys(flow.target for flow in taking):
            cluster, name = self._topology.clusters[alias], self._topology.name
            try:
                if journals(cluster, name).is_own:
                    # It was read with the status of the tasks.
                    heard = self._readers[alias].last_looks()
                else:
                    heard = self._heartbeats.setdefault(alias, LastLooks(cluster, name)).current()
            except AnabranchError as error:
                unheard[alias] = error
                found |= {flow.name: None for flow in taking if flow.target == alias}
                continue
            found |= {flow.name: heard[flow.name] for flow in taking if flow.target == alias and flow.name in heard}
        return found, unheard

    def _in_force(self) -> dict[str, InForce]:
        from reconciler.state.declarations import Declarations

        found: dict[str, InForce] = {}
        for alias in self._readers:
            cluster = self._topology.clusters[alias]
            asked = self._declarations.setdefault(alias, Declarations(cluster, self._topology.name))
            # A principal that may read the status topic alone still gets the status of flows.
            with contextlib.suppress(AnabranchError):
                if entry := asked.current().in_force:
                    found[alias] = entry
                    if entry.digest == MOVED:
                        self._moved.add(alias)
        return found

    def _go_home(self, alias: str) -> None:
        """Read from now on the topics to which the journals of a target were moved."""
        from reconciler.state.journals import home

        home.forget(self._topology.clusters[alias], self._topology.name)
        for known in (self._readers, self._declarations, self._failovers, self._rules):
            if (one := known.pop(alias, None)) is not None:
                one.close()

    def _failed_over(self) -> dict[str, dict[str, FailedOver]]:
        from reconciler.state.failovers import Failovers

        found: dict[str, dict[str, FailedOver]] = {}
        for alias in self._readers:
            cluster = self._topology.clusters[alias]
            asked = self._failovers.setdefault(alias, Failovers(cluster, self._topology.name))
            with contextlib.suppress(AnabranchError):
                found[alias] = asked.current()
        return found

    def _pauses(self, flows: Sequence[Flow], living: Collection[str]) -> dict[str, Pauses]:
        """Return what is paused at the targets of flows without a live task: no status has it then."""
        from reconciler.state.control import PauseRules

        found: dict[str, Pauses] = {}
        for alias in dict.fromkeys(flow.target for flow in flows if flow.name not in living):
            if alias not in self._readers:
                continue
            cluster = self._topology.clusters[alias]
            asked = self._rules.setdefault(alias, PauseRules(cluster, self._topology.name, _PATIENCE))
            with contextlib.suppress(AnabranchError):
                found[alias] = asked.current()
        return found

    def close(self) -> None:
        """Close all connections."""
        for rules in self._rules.values():
            rules.close()
        for reader in self._readers.values():
            reader.close()
        for known in self._failovers.values():
            known.close()
        for asked in self._declarations.values():
            asked.close()
        for heartbeats in self._heartbeats.values():
            heartbeats.close()


def status(topology: Topology, clusters: Sequence[str] = ()) -> StatusView:
    """Return what the status topics of the targets hold now: of each flow the newest status of each task.

    `reconciler.report.status.summary.summarise` makes figures of each flow from it.

    Args:
        topology: what is declared.
        clusters: aliases of the targets; none means all, those of disabled flows included.

    Returns:
        One view. Targets that do not answer are in `failures` by alias, with the error.

    Raises:
        InvalidArgument: `clusters`, an alias is not declared.
    """
    with contextlib.closing(status_lookout(topology, clusters)) as lookout:
        return lookout.look()


def status_lookout(topology: Topology, clusters: Sequence[str] | None) -> Lookout:
    """Return what `status` reads with, for callers that read again and again; close it."""
    every = tuple(dict.fromkeys(flow.target for flow in topology.flows))
    targets = chosen_targets(topology, clusters) if clusters else every
    return Lookout(topology, targets, with_in_force=True, with_groups=True, with_disabled=True)
