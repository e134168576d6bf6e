"""The lines of flows whose status could not be read, below those of `status`."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from reconciler.model.declared.flow import Flow
from reconciler.report.text.line import Line


def unread_lines(flows: Iterable[Flow], unread: Collection[str]) -> list[Line]:
    """Return a line for each flow whose target was not read.

    Args:
        flows: the declared ones.
        unread: aliases of these targets.
    """
    return [
        Line(f"{flow.source} → {flow.target}   ", style="bold").append(
            f"unknown     {flow.target} does not answer [AB310]", style="red"
        )
        for flow in flows
        if flow.target in unread and flow.enabled
    ]
