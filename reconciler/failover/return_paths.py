"""Paths of group positions back to originals: along the flows that copied back, or against the failed-over flow."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.checkpoints.groups.groups import Groups
from reconciler.failover.groups import group_positions
from reconciler.failover.logs import reverse_flows
from reconciler.failover.logs.cuts import TRANSLATED
from reconciler.failover.logs.divergence import Divergence
from reconciler.failover.logs.progress_back import by_way
from reconciler.model.declared.flow import Flow
from reconciler.model.offsets.committed import Log, LogBounds
from reconciler.model.recorded.failover import Cut, FailbackPlan


def paths_back(ways: group_positions.Paths, plan: FailbackPlan, flow: Flow, target: Groups) -> group_positions.Paths:
    """Return the paths back, including those for records that reached copies after their cuts.

    With identical offsets, the path against the flow covers these records, too.

    Args:
        ways: against the flow, and all others between its two clusters.
        plan: of the failback.
        flow: the flow that is failed over.
        target: the side that groups leave.

    Raises:
        AnabranchError: the target does not answer, or something there is refused.
    """
    come = [one for one in plan.topics if one.is_rebuilt or (one.is_new and plan.cuts[one.topic].mode == TRANSLATED)]
    rebuilt = {one.topic for one in come if one.is_rebuilt}
    found = dict(ways)
    for way, cuts in by_way(plan, come).items():
        # One flow for all cuts of a way: the shifted runs of each are read separately.
        back = reverse_flows.backward(flow, way, cuts)
        ends = Divergence.bounds(target, ((cut.remote, cut) for cut in cuts))
        for cut in cuts:
            begins = _begins(cut, ends, cut.topic in rebuilt)
            path = group_positions.Path(back, "downstream", cut.remote, cut.topic, begins)
            found[cut.remote] = [path, *found.get(cut.remote, ())]
    return found


def _begins(cut: Cut, ends: Mapping[Log, LogBounds], is_whole: bool) -> dict[int, int]:
    """Return the first offset that came back, by partition of a copy; partitions without new records are left out."""
    if is_whole:
        return dict.fromkeys(range(len(cut.ends)), 0)
    return {number: end for number, (_, end) in enumerate(cut.ends) if ends[cut.remote, number].end > end}
