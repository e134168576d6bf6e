"""What the plan says of each flow beside its topics: offsets, fill, padding, and what is not started.

Pure. Called by `build`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from reconciler.model.access import Access
from reconciler.model.flow import Flow
from reconciler.model.steps import NotStarted, Padding, PlannedFlow
from reconciler.plan.offsets import Choice


def planned_flow(flow: Flow, chosen: Collection[Choice], access: Access) -> PlannedFlow:
    """Return what is said of `flow`.

    Args:
        flow: the flow.
        chosen: the choices for the topics that it takes.
        access: what we may do on its target.
    """
    identical = [choice for choice in chosen if choice.against is None]
    padded = [count for choice in identical for count in choice.padding.values()]
    fill, fill_reason = _fill(flow, access)
    return PlannedFlow(
        name=flow.name,
        source=flow.source,
        target=flow.target,
        tasks=flow.tasks,
        topics=len(identical),
        offsets="identical" if identical or not chosen else "translated",
        offsets_reason=_offsets_reason(flow, len(identical), len(chosen)),
        fill=fill,
        fill_reason=fill_reason,
        padding=Padding(sum(padded), len(padded)),
    )


def not_started(chosen: Collection[Choice]) -> Iterator[NotStarted]:
    """Yield the topics that would need translated offsets, which this version cannot run."""
    for choice in chosen:
        if choice.against is not None:
            flow = choice.flow
            yield NotStarted(flow.name, flow.source, choice.original.name, choice.remote, choice.against)


def _offsets_reason(flow: Flow, identical: int, taken: int) -> str:
    if flow.offsets == "identical":
        return "as demanded"
    if identical == taken:
        return "each copy has one original and only we write there"
    return f"{taken - identical} of {taken} topics cannot have them, and are not started"


def _fill(flow: Flow, access: Access) -> tuple[str, str]:
    """Return how gaps are filled, and why."""
    if flow.fill != "transactions" and access.may_write_markers:
        return "markers", "exact"
    said = "exact except across a coordinator's restart, where shifted runs are recorded"
    if flow.fill == "transactions":
        return "transactions", said
    return "transactions", f"{said}; markers need {access.marker_operation} on the cluster"
