"""Every metric that is exposed: name, type, help and labels, in one table.

The exposition, the reference in `docs/reference/metrics.md`, the alert rules and the dashboard are made from it or held
against it. Units are Prometheus' base units: seconds and bytes, and records as counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MetricType = Literal["gauge", "counter", "histogram", "unknown"]

FLOW = ("topology", "flow", "source", "target")
TASK = (*FLOW, "task")
PARTITION = (*FLOW, "topic", "partition")
GROUP = (*FLOW, "group")
CLUSTER = ("topology", "cluster")


@dataclass(frozen=True)
class MetricFamily:
    """One metric.

    Attributes:
        name: without the suffixes of its samples (`_total`, `_bucket`).
        type: of Prometheus; `unknown` for names of others whose type the name does not show.
        help: one sentence.
        labels: of every sample, in this order.
    """

    name: str
    type: MetricType
    help: str
    labels: tuple[str, ...]

    @property
    def sample(self) -> str:
        """The name of its samples, of a histogram without the suffix."""
        return f"{self.name}_total" if self.type == "counter" else self.name


def _gauge(name: str, labels: tuple[str, ...], text: str) -> MetricFamily:
    return MetricFamily(f"anabranch_{name}", "gauge", text, labels)


def _counter(name: str, labels: tuple[str, ...], text: str) -> MetricFamily:
    return MetricFamily(f"anabranch_{name}", "counter", text, labels)


FLOW_UP = _gauge("flow_up", FLOW, "Whether at least one task of the flow has reported within the last 5 seconds.")
FLOW_STATE = _gauge(
    "flow_state", (*FLOW, "state"), "1 for the state that the flow is in, as anabranch status prints it; 0 for others."
)
FLOW_ENABLED = _gauge("flow_enabled", FLOW, "Whether the topology file enables the flow.")
FLOW_FAILED_OVER = _gauge("flow_failed_over", FLOW, "Whether the flow is failed over: its clients are at the target.")
FLOW_TASKS = _gauge("flow_tasks", FLOW, "Tasks that report.")
FLOW_TASKS_WANTED = _gauge("flow_tasks_wanted", FLOW, "Tasks that the running processes have for the flow.")
FLOW_TASKS_SILENT = _gauge("flow_tasks_silent", FLOW, "Tasks of the newest run that stopped reporting.")
FLOW_REPORT_AGE = _gauge("flow_report_age_seconds", FLOW, "Time since the flow's last report.")
FLOW_LAG_RECORDS = _gauge("flow_lag_records", FLOW, "Offsets still to copy, of the partitions whose lag is known.")
FLOW_LAG_SECONDS = _gauge("flow_lag_seconds", FLOW, "Age of the oldest record still to copy; 0 when caught up.")
FLOW_LAG_UNKNOWN = _gauge("flow_lag_unknown_partitions", FLOW, "Partitions whose lag is not known.")
FLOW_RECORD_RATE = _gauge("flow_records_per_second", FLOW, "Records copied per second over the last 5 seconds.")
FLOW_BYTE_RATE = _gauge("flow_bytes_per_second", FLOW, "Bytes copied per second, as batches in their codec.")
FLOW_PARTITIONS = _gauge(
    "flow_partitions", (*FLOW, "state"), "Partitions of the flow by state: opening, running, parked, paused, waiting."
)
FLOW_GROUPS = _gauge("flow_groups", FLOW, "Consumer groups that the last round of checkpoints has synced.")
FLOW_GROUPS_REFUSED = _gauge("flow_groups_refused", FLOW, "Groups that the last round of checkpoints has not synced.")
FLOW_CHECKPOINT_AGE = _gauge("flow_checkpoint_age_seconds", FLOW, "Time since the last round of checkpoints.")
FLOW_CHECKPOINT_LATE = _gauge(
    "flow_checkpoint_late", FLOW, "Whether that is longer than three intervals of the flow's groups, and 30 seconds."
)

TASK_START = _gauge("task_start_time_seconds", TASK, "When the task's process began with the flow, since 1970.")
TASK_MEMORY = _gauge("task_resident_memory_bytes", TASK, "Resident set of the task's process.")
TASK_ROUNDS = _counter("task_rounds", TASK, "Rounds that the task's process has begun.")
TASK_RECORDS = _counter("task_records", TASK, "Records that the task's process has copied.")
TASK_BYTES = _counter("task_bytes", TASK, "Bytes that the task's process has copied, as batches in their codec.")
LATENCY = MetricFamily(
    "anabranch_replication_latency_seconds",
    "histogram",
    "Time from a record's timestamp until the target has acknowledged its copy.",
    TASK,
)

PARTITION_STATE = _gauge("partition_state", (*PARTITION, "state"), "1 for the state that the partition is in.")
PARTITION_LAG_RECORDS = _gauge("partition_lag_records", PARTITION, "Offsets still to copy.")
PARTITION_LAG_SECONDS = _gauge("partition_lag_seconds", PARTITION, "Age of the oldest record still to copy.")
PARTITION_POSITION = _gauge("partition_position_offset", PARTITION, "Next source offset to be written.")
PARTITION_END = _gauge("partition_end_offset", PARTITION, "The source's end: its last stable offset.")
PARTITION_RECORDS = _counter("partition_records", PARTITION, "Records copied since the task's process began.")
PARTITION_BYTES = _counter("partition_bytes", PARTITION, "Bytes copied since the task's process began.")
PARTITION_FILLS = _counter("partition_filled_offsets", PARTITION, "Source offsets without a record that were filled.")
PARTITION_RETRIES = _counter("partition_retries", PARTITION, "How often the partition had to be opened anew.")
PARTITION_SHIFT = _gauge(
    "partition_shifted_offsets", PARTITION, "How far the copy's offsets are ahead of the source's."
)
PARTITION_RECORD_AGE = _gauge("partition_record_age_seconds", PARTITION, "Age of the newest record when it was read.")
PARTITION_LATENCY = _gauge(
    "partition_latency_seconds",
    (*PARTITION, "stat"),
    "Replication latency of the last half minute: min, avg, p50, p99 and max.",
)
PARTITION_TROUBLE = _gauge(
    "partition_trouble",
    (*PARTITION, "code"),
    "1 where the partition does not run, or records of its source are held back; the code is the reason's.",
)

GROUP_AGE = _gauge("group_checkpoint_age_seconds", GROUP, "Time since the group's positions were last synced.")
GROUP_REFUSED = _gauge("group_refused", (*GROUP, "code"), "1 for a group that is not synced; the code is the reason's.")

CLUSTER_UP = _gauge("cluster_up", CLUSTER, "Whether the target cluster answers this exporter.")
DRIFT = _gauge("drift_items", (*CLUSTER, "kind"), "Differences between what was applied and what is there, by kind.")
LOOK_SECONDS = _gauge("look_duration_seconds", (), "How long the last reading of the status topics took.")
LOOK_TIME = _gauge("look_time_seconds", (), "When the status topics were last read, since 1970.")
BUILD = MetricFamily("anabranch_build_info", "gauge", "1; the version of this exporter is a label.", ("version",))

OURS: tuple[MetricFamily, ...] = tuple(one for one in list(globals().values()) if isinstance(one, MetricFamily))
"""All of these, in the order of this file."""
