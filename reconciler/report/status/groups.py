"""The consumer groups that flows take along: the table of `groups`, and its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import LastLook
from reconciler.report.text.columns import aligned
from reconciler.report.text.line import Line
from reconciler.report.text.measures import seconds

_TITLES = ("flow", "group", "synced", "refused")


def groups_json(flow: Flow, last_looks: Mapping[str, LastLook | None], now: float) -> dict[str, Any]:
    """Return the groups of a flow: seconds since their positions were written, or why they are not, as JSON types.

    Args:
        flow: this one.
        last_looks: by flow, when its groups were last copied.
        now: seconds since 1970.
    """
    last = last_looks.get(flow.name)
    return {
        "taken": bool(flow.groups.include),
        "silentSeconds": None if last is None else max(0.0, now - last.time),
        "count": None if last is None else last.groups,
        "groups": [
            {
                "group": one.name,
                "ageSeconds": max(0.0, now - one.time) if one.time else None,
                "code": one.code or None,
            }
            for one in (last.by_group if last else ())
        ],
    }


def all_groups_json(
    flows: Iterable[Flow], last_looks: Mapping[str, LastLook | None], now: float, unreachable: Sequence[str] = ()
) -> dict[str, Any]:
    """Return `time`, `flows` (each with its `flow` and what `groups_json` has) and `unreachable`, as JSON types."""
    return {
        "time": now,
        "flows": [{"flow": flow.name, **groups_json(flow, last_looks, now)} for flow in flows],
        "unreachable": list(unreachable),
    }


def group_lines(
    flows: Sequence[Flow], last_looks: Mapping[str, LastLook | None], now: float, indent: int = 0
) -> list[Line]:
    """Return the table, and a line for each flow that takes no group along, or of which no round is known."""
    rows: list[list[str | Line]] = []
    notes = []
    for flow in flows:
        last = last_looks.get(flow.name) if flow.groups.include else None
        if not flow.groups.include:
            notes.append(
                Line(f"{' ' * indent}{flow.name}: takes no groups along (groups.include is empty)", style="dim")
            )
        elif last is None:
            notes.append(
                Line(f"{' ' * indent}{flow.name}: no round is known: nothing has copied groups", style="yellow")
            )
        elif not last.by_group:
            notes.append(Line(f"{' ' * indent}{flow.name}: {_count(last)}"))
        for one in last.by_group if last else ():
            age = f"{seconds(max(0.0, now - one.time))} ago" if one.time else "never"
            rows.append([flow.name, one.name, age, Line(one.code, style="red") if one.code else ""])
    return aligned(_TITLES, rows, indent=indent) + notes


def _count(last: LastLook) -> str:
    if last.groups is None:
        return "how many groups there are is not known"
    return "no group matches groups.include" if not last.groups else f"{last.groups:,} groups, not recorded by name"
