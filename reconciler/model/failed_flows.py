"""Which flows rest because they are failed over: their file says so, or a record at their target.

One of the two suffices. The gate, `plan` and `status` ask here, so that all of them mean the same flows. Pure.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from reconciler.model.failover import FailedOver
from reconciler.model.flow import Flow


def failed_flows(flows: Iterable[Flow], on_record: Mapping[str, FailedOver]) -> dict[str, FailedOver | None]:
    """Return which of some flows are failed over, by name, each with its record; None where only its file says so.

    Args:
        flows: into one target.
        on_record: by flow, what the journal of that target says.
    """
    return {flow.name: on_record.get(flow.name) for flow in flows if flow.failed_over or flow.name in on_record}


def why_resting(flow: str, state: FailedOver | None) -> str:
    """Say why a flow that is failed over copies nothing, without its name.

    Args:
        flow: name of the flow.
        state: its record; None where only its file says so.
    """
    if state is None:
        return "failed over, as its file declares (failed-over: true): nothing is copied"
    when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(state.since))
    told = f"since {when} by {state.by}"
    if state.phase == "ending":
        return f"failing over {told}: nothing is copied any more"
    if state.phase == "returning":
        return f"failing back, failed over {told}: nothing is copied until `anabranch failback --flow {flow}` is done"
    return f"failed over {told}: nothing is copied until `anabranch failback --flow {flow}`"
