"""Which flows rest because they are failed over: by their file, or by a record at their target.

One of the two suffices. The gate, `plan` and `status` call it, so that all of them mean the same flows. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from reconciler.model.base.text import utc
from reconciler.model.declared.flow import Flow
from reconciler.model.recorded.failover import FailedOver


def failed_flows(flows: Iterable[Flow], on_record: Mapping[str, FailedOver]) -> dict[str, FailedOver | None]:
    """Return which of some flows are failed over, by name, each with its record; None where only its file declares it.

    Args:
        flows: into one target.
        on_record: by flow, the record in that target's journal.
    """
    return {flow.name: on_record.get(flow.name) for flow in flows if flow.failed_over or flow.name in on_record}


def needless_sources(
    flows: Collection[Flow], silent: Iterable[str], on_record: Callable[[str], Collection[str]]
) -> frozenset[str]:
    """Return which clusters that do not answer need not: sources of flows that are failed over, and nothing else.

    Args:
        flows: those into the targets in question; of those that are not enabled the targets matter alone.
        silent: aliases of the clusters that do not answer.
        on_record: called for a target whose file does not declare it for all; returns the names of the flows that
            are on record there as failed over, none where it does not answer.
    """
    sources = frozenset(silent) - {flow.target for flow in flows}
    running = [flow for flow in flows if flow.enabled and flow.source in sources]
    resting = frozenset(flow.source for flow in running)
    return resting - {flow.source for flow in running if not (flow.failed_over or flow.name in on_record(flow.target))}


def why_resting(flow: str, state: FailedOver | None) -> str:
    """Return why a flow that is failed over copies nothing, without its name.

    Args:
        flow: name of the flow.
        state: its record; None where only its file declares it.
    """
    if state is None:
        return "failed over, as its file declares (failed-over: true): nothing is copied"
    told = since(state)
    if state.phase == "ending":
        return f"failing over {told}: nothing is copied any more"
    if state.phase == "returning":
        return f"failing back, failed over {told}: nothing is copied until `anabranch failback --flow {flow}` is done"
    return f"failed over {told}: nothing is copied until `anabranch failback --flow {flow}`"


def since(state: FailedOver) -> str:
    """Return the time at which a flow was failed over, and the user: `since 2026-11-23 04:00:00 UTC by ops@host`."""
    return f"since {utc(state.since)} by {state.by}"
