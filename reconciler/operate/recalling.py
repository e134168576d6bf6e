"""What is on record of a topology: applies, changes at run time, pauses and failovers, with their users and times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

from reconciler.model.base.errors import Problem, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.declaration import DESTROYED, MOVED
from reconciler.model.recorded.event import EventKind, RecordedEvent
from reconciler.model.recorded.failover import Phase
from reconciler.operate.targets import chosen_targets

_PHASES: dict[Phase, EventKind] = {"ending": "failing over", "over": "failed over", "returning": "failing back"}
_ENDS: dict[str, tuple[EventKind, str]] = {DESTROYED: ("destroyed", "all copies"), MOVED: ("moved", "journals")}
_TIMEOUT = 10.0


def events(
    topology: Topology, clusters: Sequence[str] | None = None
) -> tuple[tuple[RecordedEvent, ...], tuple[Problem, ...]]:
    """Return what is on record, the newest last, and why the targets that are away could not be read.

    Of applies the last 50 are on record at each target; of pauses, failovers and changes at run time what holds now.

    Args:
        topology: what is declared.
        clusters: aliases of targets; none means all.

    Raises:
        InvalidArgument: `clusters`, an alias is not declared.
        EnvironmentFault: AB311, a target refuses to be read; or as connecting to it raises it.
    """
    found: list[RecordedEvent] = []
    problems: list[Problem] = []
    for alias in chosen_targets(topology, clusters):
        try:
            found += _at(topology.clusters[alias], topology.name)
        except Unreachable as error:
            problems += error.problems
    return tuple(sorted(found, key=lambda one: one.time)), tuple(problems)


def _at(cluster: Cluster, topology: str) -> Iterator[RecordedEvent]:
    """Yield what one target has on record.

    Raises:
        Unreachable: AB310, it does not answer.
        EnvironmentFault: AB311, reading is refused.
    """
    from reconciler.state.control import PauseRules
    from reconciler.state.declarations import Declarations
    from reconciler.state.failovers import Failovers

    with closing(Declarations(cluster, topology, _TIMEOUT)) as declarations:
        history = declarations.current()
    for entry in history.entries:
        kind, about = _ENDS.get(entry.digest, ("applied", f"digest {entry.digest}"))
        yield RecordedEvent(entry.since, cluster.alias, kind, about, entry.by)
    for one in history.overrides:
        yield RecordedEvent(one.since, cluster.alias, "changed", f"flow {one.flow}", one.by, one.flow)
    with closing(Failovers(cluster, topology, _TIMEOUT)) as failovers:
        for state in failovers.current().values():
            kind, about = _PHASES[state.phase], f"flow {state.flow}"
            yield RecordedEvent(state.since, cluster.alias, kind, about, state.by, state.flow)
    with closing(PauseRules(cluster, topology, _TIMEOUT)) as rules:
        for scope in (scope for scope, is_paused in rules.current().rules.items() if is_paused):
            if (written := rules.written(scope)) is not None:
                about = str(scope) if scope.topic is None else f"{scope} of flow {scope.flow}"
                yield RecordedEvent(written.since, cluster.alias, "paused", about, written.by, scope.flow)
