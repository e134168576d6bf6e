"""How ready a flow is for a failover, from what its tasks and its groups report; no cluster is asked."""

from __future__ import annotations

from typing import Any

from reconciler.model.declared.flow import Flow
from reconciler.model.tasks.status import PartitionState
from reconciler.operate.watching import StatusView
from reconciler.report.status.summary import FlowSummary

_STOPPED = (PartitionState.PARKED, PartitionState.PAUSED)


def readiness(flow: Flow, one: FlowSummary, view: StatusView) -> dict[str, Any]:
    """Return as JSON types what a failover would find now.

    `recordsBehind` would stay at the source, null while the lag of some partition is not known. `groups` is null where
    the flow takes none; `exact` of its `all` can be moved to the position that they have.

    Args:
        flow: the flow.
        one: its figures.
        view: the reading that these are from.
    """
    reasons = list(_reasons(one))
    groups = _groups(flow, one, view)
    if groups is not None and groups["refused"]:
        reasons.append(f"{len(groups['refused'])} of {groups['all']} groups are not synced")
    if groups is not None and one.groups is not None and one.groups.late:
        reasons.append("the groups' last round of checkpoints is long ago")
    known = one.lag is not None and not one.unknown and one.tasks > 0
    return {
        "flow": flow.name,
        "ready": not reasons,
        "reasons": reasons,
        "recordsBehind": one.lag if known else None,
        "secondsBehind": one.lag_seconds if known else None,
        "groups": groups,
        "command": f"anabranch failover FILE --flow {flow.name} --plan",
    }


def _reasons(one: FlowSummary) -> list[str]:
    if one.is_failed_over:
        return ["it is failed over already"]
    if not one.tasks:
        return [f"it does not run: {one.state}"]
    found: list[str] = []
    stopped = sum(partition.state in _STOPPED for partition in one.partitions)
    if stopped:
        found.append(f"{stopped} of {len(one.partitions)} partitions are parked or paused")
    if one.unknown:
        found.append(f"the lag of {one.unknown} of {len(one.partitions)} partitions is not known")
    if one.silent_tasks or one.unheard_tasks:
        found.append(f"{one.silent_tasks + one.unheard_tasks} of its tasks do not report")
    if one.lag:
        found.append(f"{one.lag} records are not copied yet")
    return found


def _groups(flow: Flow, one: FlowSummary, view: StatusView) -> dict[str, Any] | None:
    if not flow.groups.include:
        return None
    last = view.last_looks.get(flow.name)
    by_group = last.by_group if last else ()
    refused = [{"group": group.name, "code": group.code} for group in by_group if group.code]
    exact = sum(not group.code for group in by_group)
    count = one.groups.count if one.groups and one.groups.count is not None else exact
    return {"exact": exact, "all": max(count + len(refused), len(by_group)), "refused": refused}
