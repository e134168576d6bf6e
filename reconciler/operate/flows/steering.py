"""What `pause`, `resume` and `restart` share: the chosen partitions, the control topic, and whether tasks confirm."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciler.model.base.errors import AnabranchError, together
from reconciler.model.base.text import shown
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.pauses import PauseScope
from reconciler.model.tasks.status import TaskStatus
from reconciler.operate.targets import InvalidArgument

Tell = Callable[[Cluster, str, Sequence[PauseScope]], int]
"""Writes scopes of a topology's flows to a cluster's control topic; returns up to which offset tasks must read it."""

# A task reads the topic every second; between two rounds it takes longer.
_PATIENCE = 15.0
_TICK = 0.2
_SHOWN_NAMES = 12
# Of the number of a partition.
_DIGITS = 9


@dataclass(frozen=True)
class SteeringWords:
    """What is printed of one flow.

    Attributes:
        done: what was done, such as `paused`.
        idle: printed when no task runs; `{what}` stands for what was chosen.
    """

    done: str
    idle: str


@dataclass(frozen=True)
class Steered:
    """What became of one flow.

    Attributes:
        flow: which one.
        scopes: what was chosen of it.
        live: how many of its tasks run.
        unconfirmed: how many of these did not confirm it in time.
    """

    flow: Flow
    scopes: tuple[PauseScope, ...]
    live: int
    unconfirmed: int


def steered(topology: Topology, flow: str | None, topics: Sequence[str], tell: Tell) -> list[Steered]:
    """Steer the tasks of the chosen flows, wait until they have confirmed it or 15 s are over, and return the result.

    Args:
        topology: what is declared.
        flow: name of a flow; None for all enabled ones that take the topics.
        topics: topics or partitions (`TOPIC/PARTITION`) by original or remote name; none means whole flows.
        tell: writes to the control topic.

    Raises:
        InvalidArgument: `flow` or `topic`, no such flow, topic or partition.
        Unreachable: AB310, a cluster does not answer.
        EnvironmentFault: AB311, a cluster refuses.
    """
    flows = _flows(topology, flow)
    targets = {one.target: topology.clusters[one.target] for one in flows}
    heard = _listening(topology, targets)
    statuses = heard()
    meant = _meant(topology, flows, topics, statuses)
    marks = {
        alias: tell(
            targets[alias], topology.name, [scope for one in meant if one.target == alias for scope in meant[one]]
        )
        for alias in {one.target for one in meant}
    }
    deadline = time.monotonic() + _PATIENCE
    while any(_deaf(one, statuses[one.target], marks[one.target]) for one in meant) and time.monotonic() < deadline:
        time.sleep(_TICK)
        statuses = heard()
    return [
        Steered(
            one,
            scopes,
            len(_live(one, statuses[one.target])),
            len(_deaf(one, statuses[one.target], marks[one.target])),
        )
        for one, scopes in meant.items()
    ]


def _listening(topology: Topology, targets: Mapping[str, Cluster]) -> Callable[[], dict[str, list[TaskStatus]]]:
    """Begin to read the status topics of some targets; return a function that returns the newest status of each task.

    It reads for two seconds more where nothing else shows whether tasks live (`Liveness.doubtful`).
    """
    from reconciler.state.liveness import Liveness, await_sure
    from reconciler.state.status import StatusReader, newest_runs

    ears = {alias: (StatusReader(cluster, topology.name), Liveness()) for alias, cluster in targets.items()}

    def hear() -> None:
        for reader, liveness in ears.values():
            # Flows of several topologies may have one name.
            liveness.update([word for word in reader.current() if word.is_of(topology.name)])

    def is_in_doubt() -> bool:
        now = time.time()
        return any(liveness.doubtful(newest_runs(liveness.on_own_clock(), now)) for _, liveness in ears.values())

    def heard() -> dict[str, list[TaskStatus]]:
        hear()
        await_sure(is_in_doubt, hear)
        return {alias: liveness.on_own_clock() for alias, (_, liveness) in ears.items()}

    return heard


def line(one: Steered, words: SteeringWords) -> str:
    """Return in words what became of a flow."""
    what = ", ".join(str(scope) for scope in one.scopes)
    if not one.live:
        return words.idle.format(what=what)
    if one.unconfirmed:
        return (
            f"{words.done} {what}, but {one.unconfirmed} of {one.live} running tasks did not confirm it within "
            f"{_PATIENCE:g} s"
        )
    return f"{words.done} {what}; confirmed by {one.live} running task{'s' if one.live > 1 else ''}"


def _live(flow: Flow, statuses: Iterable[TaskStatus]) -> list[TaskStatus]:
    now = time.time()
    words = (status for status in statuses if status.flow == flow.name and status.is_live(now))
    return [word for word in words if not word.is_held]


def _deaf(flow: Flow, statuses: Iterable[TaskStatus], mark: int) -> list[TaskStatus]:
    """Return the running tasks that have not yet read up to `mark`, or are of a release without these commands."""
    return [status for status in _live(flow, statuses) if status.heard < mark or not status.topology]


# --- what is meant ---------------------------------------------------------------------------------------------------


def _flows(topology: Topology, name: str | None) -> tuple[Flow, ...]:
    flows = tuple(flow for flow in topology.flows if flow.enabled)
    chosen = tuple(flow for flow in flows if name in (None, flow.name))
    if not chosen:
        message = f"no enabled flow {name} is declared; there are {', '.join(flow.name for flow in flows) or 'none'}"
        raise InvalidArgument(message, "flow")
    return chosen


def _meant(
    topology: Topology, flows: Sequence[Flow], named: Sequence[str], statuses: dict[str, list[TaskStatus]]
) -> dict[Flow, tuple[PauseScope, ...]]:
    """Return what is meant by flow; each name must be known to one of the flows."""
    if not named:
        return {flow: (PauseScope(flow.name),) for flow in flows}
    failures: list[AnabranchError] = []
    known = {flow: _known(topology, flow, statuses[flow.target], failures) for flow in flows}
    meant: dict[Flow, tuple[PauseScope, ...]] = {}
    for name in dict.fromkeys(named):
        found = False
        for flow, topics in known.items():
            if (scope := _scope(flow, topics, name)) is not None:
                meant[flow] = (*meant.get(flow, ()), scope)
                found = True
        if not found and failures:
            raise together(failures)
        if not found:
            raise InvalidArgument(_unknown(name, known), "topic")
    return meant


def _known(
    topology: Topology, flow: Flow, statuses: Iterable[TaskStatus], failures: list[AnabranchError]
) -> dict[str, int]:
    """Return the flow's topics with their numbers of partitions, from the status of its tasks and from its source."""
    from reconciler.observe.connection import Connection

    known: dict[str, int] = {}
    for status in statuses:
        for partition in status.partitions if status.flow == flow.name else ():
            known[partition.topic] = max(known.get(partition.topic, 0), partition.partition + 1)
    try:
        topics = Connection(topology.clusters[flow.source]).metadata.topics
    except AnabranchError as error:
        # A flow can be paused just because its source is gone.
        failures.append(error)
        return known
    there = {name: len(topic.partitions) for name, topic in topics.items() if flow.takes(name, topology.aliases)}
    return known | {name: max(count, known.get(name, 0)) for name, count in there.items()}


def _scope(flow: Flow, topics: dict[str, int], name: str) -> PauseScope | None:
    """Return what `TOPIC[/PARTITION]` names in a flow, by original or remote name; None when it has no such thing."""
    wanted, slash, number = name.partition("/")
    # A policy class may have no name for some topics, or not be installed here.
    topic = wanted if wanted in topics else next((one for one in topics if wanted == _copy(flow, one)), None)
    if topic is None:
        return None
    if not slash:
        return PauseScope(flow.name, topic)
    is_there = number.isdecimal() and len(number) <= _DIGITS and int(number) < topics[topic]
    return PauseScope(flow.name, topic, int(number)) if is_there else None


def _copy(flow: Flow, topic: str) -> str | None:
    return flow.remote_topic(topic) if flow.nameless(topic) is None else None


def _unknown(name: str, known: dict[Flow, dict[str, int]]) -> str:
    wanted = name.partition("/")[0]
    for flow, topics in known.items():
        for topic, count in topics.items():
            if wanted in (topic, _copy(flow, topic)):
                return f"{name} is no partition: topic {topic} of flow {flow.name} has 0 to {count - 1}"
    names = sorted({shown(topic) for topics in known.values() for topic in topics})
    more = f" and {len(names) - _SHOWN_NAMES} more" if len(names) > _SHOWN_NAMES else ""
    flows = ", ".join(flow.name for flow in known)
    return f"no topic {wanted} in {flows}; there are {', '.join(names[:_SHOWN_NAMES]) or 'none'}{more}"
