"""The declared flows: the table of `flows`, and its JSON. No cluster is asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.model.declared.flow import Flow
from reconciler.report.text.columns import aligned
from reconciler.report.text.line import Line

_TITLES = ("flow", "from", "to", "topics", "without", "groups", "tasks", "offsets", "policy", "note")


def flow_lines(flows: Sequence[Flow]) -> list[Line]:
    """Return the table, in the order of the files."""
    return aligned(_TITLES, [_cells(flow) for flow in flows], right=("tasks",)) or [Line("no flows are declared")]


def _cells(flow: Flow) -> list[str]:
    topics, without, groups = (
        ", ".join(map(str, names)) for names in (flow.topics.include, flow.topics.exclude, flow.groups.include)
    )
    note = ("disabled" if not flow.enabled else "") or ("failed over" if flow.failed_over else "")
    return [
        *(flow.name, flow.source, flow.target, topics, without, groups),
        *(f"{flow.tasks:,}", flow.offsets, flow.policy.kind, note),
    ]


def flows_json(flows: Sequence[Flow]) -> list[dict[str, Any]]:
    """Return the flows as JSON types, in the order of the files."""
    return [
        {
            "flow": flow.name,
            "source": flow.source,
            "target": flow.target,
            "topics": {"include": list(map(str, flow.topics.include)), "exclude": list(map(str, flow.topics.exclude))},
            "groups": list(flow.groups.include),
            "tasks": flow.tasks,
            "offsets": flow.offsets,
            "policy": flow.policy.kind,
            "enabled": flow.enabled,
            "failedOver": flow.failed_over,
        }
        for flow in flows
    ]
