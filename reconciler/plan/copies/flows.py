"""What the plan shows of each flow beside its topics: offsets, fill, padding, and what is not started.

Pure. Called by `build`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from reconciler.model.acls.own_access import Access
from reconciler.model.declared.flow import Flow
from reconciler.model.planning.padding import Padding
from reconciler.model.planning.steps import NotStarted, PlannedFlow
from reconciler.plan.copies.offsets import Choice

_NONE = "none of its topics can be copied"
_NOTHING_FILLED = "not needed: translated offsets leave no gap to fill"


def planned_flow(flow: Flow, chosen: Collection[Choice], access: Access) -> PlannedFlow:
    """Return what is shown of `flow`.

    Args:
        flow: the flow.
        chosen: the choices for the topics that it takes.
        access: what we may do on its target.
    """
    started = [choice for choice in chosen if choice.blocked is None]
    identical = [choice for choice in started if choice.against is None]
    padded = [count for choice in identical for count in choice.padding.values()]
    fill, fill_reason = _fill(flow, access)
    if started and not identical:
        fill_reason = _NOTHING_FILLED
    return PlannedFlow(
        name=flow.name,
        source=flow.source,
        target=flow.target,
        tasks=flow.tasks,
        topics=len(started),
        offsets="identical" if identical or not chosen else "translated",
        offsets_reason=_offsets_reason(flow, identical, started) if started or not chosen else _NONE,
        fill=fill,
        fill_reason=fill_reason,
        padding=Padding(sum(padded), len(padded)),
    )


def not_started(chosen: Collection[Choice]) -> Iterator[NotStarted]:
    """Yield the topics that cannot be copied, as their copies have identical offsets of another topic."""
    for choice in chosen:
        if choice.blocked is not None:
            flow = choice.flow
            yield NotStarted(flow.name, flow.source, choice.original.name, choice.remote, choice.blocked)


def _offsets_reason(flow: Flow, identical: Collection[Choice], started: Collection[Choice]) -> str:
    others = [choice for choice in started if choice.against is not None]
    repeated = "; records may be repeated" if flow.repeats and others else ""
    if flow.offsets != "auto":
        return f"as demanded{repeated}"
    if not others:
        return "each copy has one original and only we write there"
    why = f"{others[0].original.name}: {others[0].against}{repeated}"
    if not identical:
        return why
    return f"{len(others)} of {len(started)} topics have translated ones; {why}"


def _fill(flow: Flow, access: Access) -> tuple[str, str]:
    """Return how gaps are filled, and why."""
    if flow.fill != "transactions" and access.may_write_markers:
        return "markers", "exact"
    said = "exact except across a coordinator's restart, where shifted runs are recorded"
    if flow.fill == "transactions":
        return "transactions", said
    return "transactions", f"{said}; markers need {access.marker_operation} on the cluster"
