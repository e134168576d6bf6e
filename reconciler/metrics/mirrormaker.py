"""The same figures under MirrorMaker 2's names, so that its dashboards and alerts go on working.

Two sets, as MirrorMaker's own `metric.names.formats` has them (KIP-1280): `legacy`, the beans
`kafka.connect.mirror:type=MirrorSourceConnector,…`, and `new`, `kafka.connect:type=plugins,connector=…,task=…,…`, both
as Prometheus' JMX exporter writes them in lower case. The label `topic` is the remote topic, as in MirrorMaker.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

from reconciler.metrics.collect import PartitionRow, Reading
from reconciler.metrics.exposition import Samples, Value, labelled
from reconciler.metrics.observed import Observed, Observer
from reconciler.metrics.table import MetricFamily

NamesFormat = Literal["legacy", "new"]
FORMATS: tuple[str, ...] = get_args(NamesFormat)

_SOURCE, _CHECKPOINT = "MirrorSourceConnector", "MirrorCheckpointConnector"
_PREFIX = {
    ("legacy", _SOURCE): "kafka_connect_mirror_mirrorsourceconnector",
    ("legacy", _CHECKPOINT): "kafka_connect_mirror_mirrorcheckpointconnector",
    ("new", _SOURCE): "kafka_connect_plugins",
    ("new", _CHECKPOINT): "kafka_connect_plugins",
}
_OF_NEW = ("connector", "task")
_OF_PARTITION = ("source", "target", "topic", "partition")
_OF_GROUP = ("source", "target", "group", "topic", "partition")


class Attribute(NamedTuple):
    """One attribute of MirrorMaker's beans for a partition.

    Attributes:
        name: as the JMX exporter writes it.
        help: MirrorMaker's meaning.
        value: from a partition's row and what was observed of it.
    """

    name: str
    help: str
    value: Callable[[PartitionRow, Observed], Value | None]


def _latency(stat: str) -> Callable[[PartitionRow, Observed], Value | None]:
    def value(row: PartitionRow, _: Observed) -> Value | None:
        latency = row.status.metrics.latency
        return None if latency is None else int(getattr(latency, stat))

    return value


ATTRIBUTES: tuple[Attribute, ...] = (
    Attribute("record_count", "Records replicated.", lambda row, _: row.status.metrics.records),
    Attribute("record_rate", "Records replicated per second.", lambda _, seen: seen.records_per_second),
    Attribute("byte_count", "Bytes replicated.", lambda row, _: row.status.metrics.bytes),
    Attribute("byte_rate", "Bytes replicated per second.", lambda _, seen: seen.bytes_per_second),
    Attribute("record_age_ms", "Age of the last record read.", lambda row, _: row.status.metrics.record_age),
    Attribute("record_age_ms_min", "The least age of records.", lambda _, seen: seen.age_min),
    Attribute("record_age_ms_max", "The greatest age of records.", lambda _, seen: seen.age_max),
    Attribute("record_age_ms_avg", "The mean age of records.", lambda _, seen: seen.age_avg),
    Attribute("replication_latency_ms", "Time from a record's timestamp to its copy.", _latency("p50")),
    Attribute("replication_latency_ms_min", "The least replication latency.", _latency("min")),
    Attribute("replication_latency_ms_max", "The greatest replication latency.", _latency("max")),
    Attribute("replication_latency_ms_avg", "The mean replication latency.", _latency("avg")),
)
_CHECKPOINT_LATENCY = tuple(f"checkpoint_latency_ms{stat}" for stat in ("", "_min", "_max", "_avg"))


def families(formats: Collection[str]) -> Iterator[MetricFamily]:
    """Yield every metric of these sets."""
    for one in formats:
        extra = _OF_NEW if one == "new" else ()
        for attribute in ATTRIBUTES:
            name = f"{_PREFIX[one, _SOURCE]}_{attribute.name}"
            yield MetricFamily(name, "unknown", f"MirrorMaker 2: {attribute.help}", (*extra, *_OF_PARTITION))
        for name in _CHECKPOINT_LATENCY:
            text = "MirrorMaker 2: age of the checkpoints of a group, in ms."
            yield MetricFamily(f"{_PREFIX[one, _CHECKPOINT]}_{name}", "unknown", text, (*extra, *_OF_GROUP))


def samples(reading: Reading, observer: Observer, formats: Collection[str]) -> Iterator[Samples]:
    """Yield the metrics of these sets.

    Args:
        reading: of the status topics.
        observer: has followed the readings before.
        formats: of `FORMATS`.
    """
    rows = [(row, observer.of(row.labels)) for row in reading.partitions]
    found = iter(families(formats))
    for one in formats:
        labels = [_of_partition(row, one) for row, _ in rows]
        for attribute in ATTRIBUTES:
            values = ((some, attribute.value(*row)) for some, row in zip(labels, rows, strict=True))
            yield Samples(next(found), [("", some, value) for some, value in values if value is not None])
        groups = _of_groups(reading, one)
        for _ in _CHECKPOINT_LATENCY:
            yield Samples(next(found), groups)


def _of_partition(row: PartitionRow, one: str) -> str:
    values = (row.task.source, row.task.target, row.status.remote, str(row.status.partition))
    if one == "legacy":
        return labelled(_OF_PARTITION, values)
    return labelled((*_OF_NEW, *_OF_PARTITION), (_SOURCE, str(row.task.task), *values))


def _of_groups(reading: Reading, one: str) -> Sequence[tuple[str, str, Value]]:
    lines = []
    for name, (flow, _, _) in reading.flows.items():
        last = reading.view.last_looks.get(name)
        for group in () if last is None else last.by_group:
            if not group.time:
                continue
            # A round syncs all positions of a group at once, so there is one figure for all of its partitions.
            values: tuple[str, ...] = (flow.source, flow.target, group.name, "", "")
            names: tuple[str, ...] = _OF_GROUP
            if one == "new":
                names, values = (*_OF_NEW, *names), (_CHECKPOINT, "0", *values)
            lines.append(("", labelled(names, values), round(1_000 * max(0.0, reading.view.now - group.time))))
    return lines
