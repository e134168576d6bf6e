"""The lines of flows that their quotas hold back, below those of `status`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.model.declared.fields import Field
from reconciler.report.status.summary import FlowSummary
from reconciler.report.text.line import Line


def quota_lines(summaries: Sequence[FlowSummary], fields: Mapping[str, Sequence[Field]]) -> list[Line]:
    """Return a line for each quota that holds flows back: in which file and line it stands, and how it is changed.

    Args:
        summaries: the flows.
        fields: by flow, with the places of those that files declare.
    """
    places = {name: one.place for name, declared in fields.items() for one in declared if one.key == "quota"}
    held: dict[str, list[str]] = {}
    for one in summaries:
        if one.is_at_quota and (place := places.get(one.name)):
            held.setdefault(place, []).append(f"{one.source} → {one.target}")
    return [
        Line(
            f"{place}: this quota holds {', '.join(routes)} back: raise or remove it, and `anabranch apply`, "
            f"where {'it is' if len(routes) == 1 else 'they are'} to catch up sooner",
            style="yellow",
        )
        for place, routes in held.items()
    ]
