"""One flow, or one topic, with all that is known of it: what `describe` prints, and its JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from reconciler.model.declared.flow import Flow
from reconciler.model.declared.groups import LastLook
from reconciler.model.recorded.event import RecordedEvent
from reconciler.report.explain import ExplainedFlow, Fate, field_lines
from reconciler.report.status import topics
from reconciler.report.status.events import event_lines
from reconciler.report.status.groups import group_lines, groups_json
from reconciler.report.status.lag import LagRow, lag_lines
from reconciler.report.status.summary import FlowSummary, status_lines
from reconciler.report.status.to_json import lag_json, without_partitions
from reconciler.report.text.line import Line

MOST_TOPICS = 20
"""Topics that the description of a flow shows as text."""
MOST_EVENTS = 5
_INDENT = 2


@dataclass(frozen=True)
class DescribedFlow:
    """One flow, and what is known of it.

    Attributes:
        flow: as it is declared.
        told: the same, with the line of each field.
        summary: its figures; None where its target was not read.
        last_looks: when its groups were last copied, by its name, where that was read.
        events: what is on record about it, the newest last.
        now: as of when, in seconds since 1970.
        start: the command that runs it.
    """

    flow: Flow
    told: ExplainedFlow
    summary: FlowSummary | None
    last_looks: Mapping[str, LastLook | None]
    events: Sequence[RecordedEvent]
    now: float
    start: str = ""


def flow_lines(one: DescribedFlow) -> list[Line]:
    """Return a flow in sections: declared, status, topics, groups, on record."""
    flow = one.flow
    lines = [Line.assemble((flow.name, "bold"), f"   {flow.source} → {flow.target}")]
    lines += [_title("declared"), *field_lines([field for field in one.told["fields"] if field["place"]], _INDENT)]
    if one.summary is None:
        return [*lines, _title("status"), Line(f"  unknown: {flow.target} was not read", style="red")]
    lines += [_title("status"), *_indented(status_lines([one.summary], start=one.start))]
    if one.summary.in_force is not None:
        lines.append(Line(f"  {one.summary.in_force}"))
    rows = topics.topic_rows([one.summary])
    lines += [_title("topics"), *topics.topic_lines(rows[:MOST_TOPICS], indent=_INDENT)]
    if len(rows) > MOST_TOPICS:
        rest = f"  and {len(rows) - MOST_TOPICS:,} more: anabranch topics --flow {flow.name}"
        lines.append(Line(rest, style="dim"))
    lines += [_title("groups"), *group_lines([flow], one.last_looks, one.now, _INDENT)]
    return [*lines, _title("on record"), *_indented(event_lines(one.events[-MOST_EVENTS:]))]


def flow_json(one: DescribedFlow, unreachable: Sequence[str] = ()) -> dict[str, Any]:
    """Return the same as JSON types, with all topics and events; `status` is None where the target was not read."""
    return {
        "time": one.now,
        "flow": one.flow.name,
        "declared": one.told,
        "status": None if one.summary is None else without_partitions(one.summary),
        "topics": [row.to_json() for row in topics.topic_rows([] if one.summary is None else [one.summary])],
        "groups": groups_json(one.flow, one.last_looks, one.now),
        "events": [asdict(event) for event in one.events],
        "unreachable": list(unreachable),
    }


@dataclass(frozen=True)
class DescribedTopic:
    """One topic in one flow.

    Attributes:
        flow: name of the flow.
        route: its source and target.
        fate: what becomes of the topic, and why.
        partitions: as its tasks report them, the worst first.
    """

    flow: str
    route: tuple[str, str]
    fate: Fate
    partitions: Sequence[LagRow]


def topics_of(topic: str, flows: Iterable[Flow]) -> dict[str, str]:
    """Return by flow the name at its source of what is called `topic` at its source or its target."""
    return {flow.name: flow.policy.original(flow.source, topic) or topic for flow in flows}


def topic_lines(name: str, described: Sequence[DescribedTopic]) -> list[Line]:
    """Return a topic: what each flow does with it, and why, and its partitions there."""
    lines = [Line(name, style="bold")]
    for one in described:
        source, target = one.route
        line = Line.assemble("  ", (f"{source} → {target}", "bold"), f"   flow {one.flow}   ")
        remote = one.fate["remote"]
        lines.append(line.append(f"{one.fate['topic']} → {remote}" if remote else "not copied"))
        lines.append(Line(f"    {one.fate['why']}", style="dim"))
        if one.partitions:
            lines += _indented(lag_lines(one.partitions), 2 * _INDENT)
            lines += [
                Line(f"    {one.fate['topic']}/{row.partition.partition}: {row.partition.reason}", style="red")
                for row in one.partitions
                if row.partition.reason
            ]
        elif remote:
            lines.append(Line("    no task has reported it"))
    return lines


def topic_json(
    name: str, described: Iterable[DescribedTopic], now: float, unreachable: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the same as JSON types."""
    return {
        "time": now,
        "topic": name,
        "flows": [
            {"flow": one.flow, **one.fate, "partitions": lag_json(one.partitions, now)["partitions"]}
            for one in described
        ],
        "unreachable": list(unreachable),
    }


def _title(text: str) -> Line:
    return Line(text, style="bold")


def _indented(lines: Iterable[Line], by: int = _INDENT) -> list[Line]:
    return [Line.assemble(" " * by, line) for line in lines]
