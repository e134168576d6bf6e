"""Rolling out in waves: which targets come first, and whether all is well there before the next ones are changed.

Pure. `apply` carries each wave's plan out by itself, and calls `objections` between two of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import LastLook
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.steps import Plan
from reconciler.model.recorded.declaration import digest_into
from reconciler.model.tasks.status import PartitionState, TaskStatus, words

Place = tuple[str, str, int]
"""A flow's name, an original topic and a partition of it."""


def waves(plan: Plan) -> tuple[Plan, ...]:
    """Return a plan as the plans of its waves, in their order."""
    return tuple(
        replace(
            plan,
            clusters=tuple(cluster for cluster in plan.clusters if cluster.wave == number),
            deployments=tuple(deployment for deployment in plan.deployments if deployment.wave == number),
        )
        for number in plan.waves
    )


def parked(flows: Collection[Flow], statuses: Collection[TaskStatus], now: float) -> frozenset[Place]:
    """Return which partitions of running flows are parked.

    Args:
        flows: that matter.
        statuses: the newest word of each task.
        now: seconds since 1970.
    """
    names = {flow.name for flow in flows}
    return frozenset(
        (status.flow, one.topic, one.partition)
        for status, one in words([one for one in statuses if one.flow in names and one.is_live(now)], now)
        if one.state is PartitionState.PARKED
    )


def objections(
    topology: Topology,
    flow: Flow,
    statuses: Collection[TaskStatus],
    before: Collection[Place],
    max_lag: float,
    now: float,
) -> Iterator[str]:
    """Yield why a flow is not well after its target was changed; nothing where no process runs it.

    Args:
        topology: what was applied.
        flow: one of its flows.
        statuses: the newest word of each task.
        before: what was parked before.
        max_lag: seconds that a partition may be behind.
        now: seconds since 1970.
    """
    live = [one for one in statuses if one.flow == flow.name and one.is_live(now)]
    if not live:
        return
    digest = digest_into(topology, flow.target)
    current = [one for one in live if one.digest == digest]
    if not any(not one.is_held for one in current):
        yield "no task runs with what was applied yet"
        return
    yield from sorted({one.failing for one in current if one.failing})
    for _, one in words(current, now):
        where = f"{one.topic}/{one.partition}"
        if one.state is PartitionState.PARKED and (flow.name, one.topic, one.partition) not in before:
            yield f"{where} is parked: {one.reason}"
        elif one.state is PartitionState.RUNNING and (one.metrics.lag_seconds or 0.0) > max_lag:
            yield f"{where} is {one.metrics.lag_seconds:.0f} s behind, {max_lag:g} s are allowed"
        elif one.state is PartitionState.RUNNING and one.lag is None:
            yield f"{where}: how far it is behind is not known yet"
        elif one.state in (PartitionState.OPENING, PartitionState.WAITING):
            yield f"{where} is {one.state}"


def about_groups(flow: Flow, statuses: Collection[TaskStatus], last: LastLook | None, now: float) -> Iterator[str]:
    """Yield why the groups of a flow are not well; nothing where it takes none along, or no process runs it.

    Args:
        flow: which one.
        statuses: the newest word of each task.
        last: when its groups were last checked; None where they were not.
        now: seconds since 1970.
    """
    is_running = any(one.flow == flow.name and one.is_live(now) and not one.is_held for one in statuses)
    if not flow.groups.include or not is_running:
        return
    longest = flow.groups.longest_silence
    if last is None:
        yield "its consumer groups were not checked yet"
    elif now - last.time > longest:
        yield f"its consumer groups were last checked {now - last.time:.0f} s ago, {longest:g} s are allowed"
