"""What flows do with single topics, and why, from the declaration alone.

`anabranch explain` calls it. Pure: names are followed, no cluster is asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from reconciler.model.base.text import json_text
from reconciler.model.declared.fields import Field
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.topic_names import is_heartbeats
from reconciler.report.text.columns import aligned
from reconciler.report.text.line import Line, Lines

# What counts where a field has no value.
_UNWRITTEN = {
    "quota": "none: as fast as it goes",
    "dlq": "none: such a partition is parked",
    "partitions": "as many as the original has",
    "replication-factor": "the original's, at most the target's brokers",
    "policy.class": "none",
}


class Fate(TypedDict):
    """What becomes of one topic in one flow.

    Keys: its name at the source; its copy's, None where it is not copied; why; the clusters that it came through by its
    name, nearest first.
    """

    topic: str
    remote: str | None
    why: str
    hops: list[str]


class ToldField(TypedDict):
    """One field of a flow: its key, the value that counts, None for none, and where it is written, if it is."""

    field: str
    value: Any
    place: str


class ExplainedFlow(TypedDict):
    """One flow: its name and ends, how it names copies, where that is declared, what becomes of topics, its fields."""

    name: str
    source: str
    target: str
    enabled: bool
    failed_over: bool
    policy: str
    place: str
    topics: list[Fate]
    fields: list[ToldField]


def explained(
    topology: Topology, flows: Sequence[Flow], topics: Sequence[str], fields: Mapping[str, Sequence[Field]]
) -> list[ExplainedFlow]:
    """Return what `flows` do with `topics`, and their fields as they count, as JSON types."""
    return [
        ExplainedFlow(
            name=flow.name,
            source=flow.source,
            target=flow.target,
            enabled=flow.enabled,
            failed_over=flow.failed_over,
            policy=flow.policy.kind,
            place=flow.policy.place,
            topics=[_fate(flow, topic, topology.aliases) for topic in topics],
            fields=[ToldField(field=one.key, value=one.value, place=one.place) for one in fields.get(flow.name, ())],
        )
        for flow in flows
    ]


def explained_text(told: Sequence[ExplainedFlow]) -> Lines:
    """Return the same for people: what becomes of topics, or the fields where none is named."""
    lines = []
    for flow in told:
        rests = ("" if flow["enabled"] else ", disabled") + (", failed over" if flow["failed_over"] else "")
        line = Line.assemble((f"{flow['source']} → {flow['target']}", "bold"), f"   flow {flow['name']}{rests}   ")
        lines.append(line.append(f"policy {flow['policy']}").append(f"   {flow['place'] or 'built in'}", style="dim"))
        rows = [
            (
                fate["topic"],
                f"→ {fate['remote']}" if fate["remote"] else "not copied",
                fate["why"]
                + (f"; it came through {', '.join(fate['hops'])}" if fate["remote"] and fate["hops"] else ""),
            )
            for fate in flow["topics"]
        ]
        lines += aligned(("topic", "copy", "why"), rows, indent=2)
        if not flow["topics"]:
            lines += field_lines(flow["fields"], indent=2)
    return Lines(lines)


def field_lines(fields: Sequence[ToldField], indent: int) -> list[Line]:
    """Return fields of a flow as a table: the value that counts, and where it is written."""
    rows = [(one["field"], _value(one), Line(one["place"] or "built in", style="dim")) for one in fields]
    return aligned(("field", "value", "from"), rows, indent=indent)


def _value(field: ToldField) -> str:
    """Return a field's value as a file writes it, or what counts where none is written."""
    value = field["value"]
    if value is None:
        return _UNWRITTEN.get(field["field"], "none")
    return value if isinstance(value, str) and value else json_text(value)


def _fate(flow: Flow, topic: str, aliases: Sequence[str]) -> Fate:
    hops = list(flow.policy.hops(topic, aliases))
    against = flow.topics.against(topic)
    if against is None and flow.policy.never_copies(topic):
        against = f"never taken: MirrorMaker 2 keeps its state under such names (separator {flow.policy.separator})"
    if against is None and flow.target in hops:
        against = f"it came through {flow.target}"
    against = against or flow.nameless(topic)
    if against is not None:
        return Fate(topic=topic, remote=None, why=against, hops=hops)
    return Fate(topic=topic, remote=flow.remote_topic(topic), why=_named_by(flow, topic), hops=hops)


def _named_by(flow: Flow, topic: str) -> str:
    policy = flow.policy
    rule = policy.rule_for(topic)
    if rule is not None:
        return f"rule {rule.place}"
    if is_heartbeats(topic, policy.separator):
        return "heartbeats have their prefix"
    return policy.describe_unmatched()
