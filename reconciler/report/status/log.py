"""Lines of a log: one event in one line, with its time and level, as text or as JSON. `cli/log` writes the events.

    2026-11-26T08:55:02Z INFO us-east-eu-west running 2,022 rec/s 0.3 MB/s lag 0 records p99 9 ms
    {"time":"2026-11-26T08:55:02Z","level":"INFO","flow":"us-east-eu-west","message":"running …","state":"running", …}

docs/reference/log.md describes both.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from reconciler.model.base.errors import Problem
from reconciler.model.base.text import json_text
from reconciler.model.tasks.status import PartitionState, PartitionStatus
from reconciler.report.status.summary import FlowSummary, flow_words
from reconciler.report.text.line import Line

Level = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
_COLOURS: Mapping[Level, str] = {"DEBUG": "dim", "INFO": "dim", "WARNING": "yellow", "ERROR": "red"}


@dataclass(frozen=True)
class Event:
    """The content of one line.

    Attributes:
        message: in words.
        level: how bad it is.
        flow: which flow it is about; empty where it is about none, or several.
        fields: what else a JSON line has.
    """

    message: str
    level: Level = "INFO"
    flow: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


def text_line(event: Event, now: float) -> Line:
    """Return an event as text; `now` is in seconds since 1970."""
    about = f"{event.flow} " if event.flow else ""
    return Line.assemble(
        (f"{_stamp(now)} ", "dim"), (f"{event.level} ", _COLOURS[event.level]), (about, "bold"), event.message
    )


def json_line(event: Event, now: float) -> str:
    """Return an event as JSON in one line."""
    flow = {"flow": event.flow} if event.flow else {}
    head = {"time": _stamp(now), "level": event.level, **flow, "message": event.message}
    return json_text(head | dict(event.fields))


def of_problem(problem: Problem, level: Level) -> Event:
    """Return the event that something is wrong."""
    head = f"{problem.where}: " if problem.where else ""
    remedy = f" → {problem.remedy}" if problem.remedy else ""
    found = {"code": problem.code, "where": problem.where, "problem": problem.message, "remedy": problem.remedy}
    return Event(f"{head}{problem.message}{problem.tag}{remedy}", level, fields=found)


def of_flow(summary: FlowSummary) -> Event:
    """Return the event of how a flow does."""
    level: Level = "WARNING" if summary.state in ("degraded", "lost") else "INFO"
    failing = f" failing: {summary.failing}" if summary.failing else ""
    fields = {
        "state": summary.state,
        "recordsPerSecond": summary.records_per_second,
        "bytesPerSecond": summary.bytes_per_second,
        "records": summary.records,
        "lag": summary.lag,
        "lagSeconds": summary.lag_seconds,
        "p99Ms": summary.latency.p99 if summary.latency else None,
        "parked": summary.parked,
        "paused": summary.paused,
    }
    return Event(f"{flow_words(summary)}{failing}", level, summary.name, fields)


def of_partition(flow: str, partition: PartitionStatus) -> Event:
    """Return the event that a partition does not run, and why."""
    reason = f": {partition.reason}" if partition.reason else ""
    level: Level = "INFO" if partition.state is PartitionState.PAUSED else "WARNING"
    fields = {
        "topic": partition.topic,
        "partition": partition.partition,
        "remote": partition.remote,
        "state": partition.state.value,
        "position": partition.position,
        "end": partition.end,
        "code": partition.reason.code if partition.reason else None,
    }
    return Event(f"{partition.remote}/{partition.partition} {partition.state}{reason}", level, flow, fields)


def _stamp(now: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
