"""Status of running flows as JSON, in the shapes that docs/reference/status.md describes: for `status` and `lag`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from reconciler.model.tasks.latency import Latency
from reconciler.model.tasks.status import PartitionStatus
from reconciler.report.status.lag import LagRow
from reconciler.report.status.summary import FlowSummary, GroupsSummary


def status_json(summaries: Sequence[FlowSummary], now: float, unreachable: Sequence[str] = ()) -> dict[str, Any]:
    """Return the summaries as JSON types: `{"time", "flows": [{"name", "state", …, "partitions": [...]}], …}`.

    Args:
        summaries: the flows.
        now: seconds since 1970, as of which they are true.
        unreachable: aliases of the clusters that did not answer, whose flows are missing.
    """
    return {"time": now, "flows": [_flow(summary) for summary in summaries], "unreachable": list(unreachable)}


def lag_json(rows: Sequence[LagRow], now: float, unreachable: Sequence[str] = ()) -> dict[str, Any]:
    """Return the rows as JSON types, the worst first: `{"time", "partitions": [{"flow", "lag", …}], …}`."""
    partitions = [{"flow": row.flow, "live": row.is_live, **_partition(row.partition)} for row in rows]
    return {"time": now, "partitions": partitions, "unreachable": list(unreachable)}


def _flow(summary: FlowSummary) -> dict[str, Any]:
    return {
        "name": summary.name,
        "source": summary.source,
        "target": summary.target,
        "state": summary.state,
        "enabled": summary.is_enabled,
        "recordsPerSecond": summary.records_per_second,
        "bytesPerSecond": summary.bytes_per_second,
        "records": summary.records,
        "lag": summary.lag,
        "lagUnknown": summary.unknown,
        "lagSeconds": summary.lag_seconds,
        "latencyMs": _latency(summary.latency),
        "parked": summary.parked,
        "paused": summary.paused,
        "waiting": summary.waiting,
        "failing": summary.failing,
        "silentSeconds": summary.silent_seconds,
        "tasks": summary.tasks,
        "silentTasks": summary.silent_tasks,
        "unheardTasks": summary.unheard_tasks,
        "inForce": summary.in_force.to_json() if summary.in_force else None,
        "pauses": [
            {"topic": scope.topic, "partition": scope.partition, "said": said} for scope, said in summary.pauses
        ],
        "failedOver": _failed_over(summary),
        "groups": _groups(summary.groups),
        "runs": [{"run": run, "digest": digest} for run, digest in summary.digests.items()],
        "partitions": [_partition(partition) for partition in summary.partitions],
    }


def without_partitions(summary: FlowSummary) -> dict[str, Any]:
    """Return a flow's figures as JSON types, as `status_json` has them, without its partitions."""
    return {name: value for name, value in _flow(summary).items() if name != "partitions"}


def _failed_over(summary: FlowSummary) -> dict[str, Any] | None:
    if not summary.is_failed_over:
        return None
    state = summary.failed_over
    if state is None:
        return {"phase": None, "since": None, "by": None}
    return {"phase": state.phase, "since": state.since, "by": state.by}


def _groups(groups: GroupsSummary | None) -> dict[str, Any] | None:
    if groups is None:
        return None
    return {"count": groups.count, "silentSeconds": groups.seconds, "late": groups.late}


def _partition(partition: PartitionStatus) -> dict[str, Any]:
    reason, metrics = partition.reason, partition.metrics
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "remote": partition.remote,
        "state": partition.state.value,
        "position": partition.position,
        "end": partition.end,
        "lag": partition.lag,
        "lagSeconds": metrics.lag_seconds,
        "latencyMs": _latency(metrics.latency),
        "recordAgeMs": metrics.record_age,
        "records": metrics.records,
        "bytes": metrics.bytes,
        "fills": metrics.fills,
        "retries": metrics.retries,
        "shifted": metrics.shifted,
        "reason": None if reason is None else {"code": reason.code, "text": reason.text},
    }


def _latency(latency: Latency | None) -> dict[str, int] | None:
    return None if latency is None else asdict(latency)
