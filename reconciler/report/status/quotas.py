"""The lines of flows that their quotas hold back, below those of `status`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.model.declared.fields import Field
from reconciler.report.status.summary import FlowSummary
from reconciler.report.text.line import Line


def quota_lines(summaries: Sequence[FlowSummary], fields: Mapping[str, Sequence[Field]]) -> list[Line]:
    """Return a line for each flow that is held at its quota: in which file and line that stands, and how it is changed.

    Args:
        summaries: the flows.
        fields: by flow, with the places of those that files declare.
    """
    places = {name: one.place for name, declared in fields.items() for one in declared if one.key == "quota"}
    return [
        Line(
            f"{place}: this quota holds {one.source} → {one.target} back: raise or remove it, and `anabranch apply`, "
            "where the flow is to catch up sooner",
            style="yellow",
        )
        for one in summaries
        if one.is_at_quota and (place := places.get(one.name))
    ]
