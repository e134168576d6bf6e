"""Counts records that were never copied, and exports them to files or to another topic.

Records are those that consumers with `read_committed` get: no markers, no aborted or compacted records.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, Message

from reconciler.checkpoints.groups.bounds import ClusterLookup
from reconciler.checkpoints.translation.walk import RecordReader
from reconciler.failover.topics.record_store import Store, kept_headers, ready
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent.faults import unreachable

SECONDS = 60.0
"""How long a cluster may be silent."""

_PAUSE_SECONDS = 0.2
_MOST_COUNTED = 1_000_000
_TYPES = {TIMESTAMP_CREATE_TIME: "CreateTime", TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime"}


@dataclass(frozen=True)
class Part:
    """A part of one partition.

    Attributes:
        topic: which topic.
        partition: its number.
        first: the first offset of it.
        end: the offset behind its last one.
    """

    topic: str
    partition: int
    first: int
    end: int


def counted(cluster: Cluster, parts: Collection[Part], seconds: float = SECONDS) -> dict[Part, int]:
    """Return the number of records in each part, by reading it.

    Args:
        cluster: where they are.
        parts: the parts; one that reaches beyond the end of its log ends there.
        seconds: how long the cluster may be silent, and how long to wait for open transactions.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB313, reading is refused; AB722, there is no such partition; AB723, a transaction in a part
            does not end; or what `clients.make` raises.
    """
    found: dict[Part, int] = dict.fromkeys(parts, 0)
    with _reading(cluster, found, seconds) as reader:
        for part in found:
            found[part] = sum(1 for _ in reader.records(part))
    return found


def about(cluster: Cluster, parts: Collection[Part]) -> dict[Part, int]:
    """Return the number of records in each part, or its number of offsets if all parts have more than a million.

    Reading a large backlog to count it would take too long. Errors are those of `counted`.
    """
    sizes = {part: part.end - part.first for part in parts}
    return counted(cluster, parts) if sum(sizes.values()) <= _MOST_COUNTED else sizes


def uncommitted(cluster: Cluster, parts: Collection[Part]) -> dict[Part, int]:
    """Return the number of records in each part, including those of open and aborted transactions.

    As in `about`, more than a million offsets are not read.

    Raises:
        AnabranchError: what `RecordReader.messages` raises.
    """
    sizes = {part: part.end - part.first for part in parts}
    if sum(sizes.values()) > _MOST_COUNTED:
        return sizes
    walker = RecordReader(cluster, committed=False, seconds=SECONDS)
    try:
        return {
            part: sum(
                message.error() is None for message in walker.messages(part.topic, part.partition, part.first, part.end)
            )
            for part in parts
        }
    finally:
        walker.close()


def by_topic(counts: Mapping[Part, int]) -> dict[str, int]:
    """Return the number of records by topic."""
    found = Counter[str]()
    for part, count in counts.items():
        found[part.topic] += count
    return dict(found)


def export_files(cluster: Cluster, parts: Collection[Part], folder: Path, seconds: float = SECONDS) -> dict[str, Path]:
    """Write the records of some parts to files, one for each topic, a line of JSON for each record.

    A line has `topic`, `partition`, `offset`, `timestamp` (milliseconds since 1970; null without one), `timestamp_type`
    (`CreateTime`, `LogAppendTime`; null without one), `key`, `value` and `headers`, a list of pairs of a name and a
    value. Keys and values are base64, or null. Lines of a partition are in the order of its offsets. A file gets its
    name only when all of it is on disk.

    Args:
        cluster: where they are.
        parts: what is written; as in `counted`.
        folder: the folder for the files; it is made if it is missing.
        seconds: as in `counted`.

    Returns:
        The file of each topic, `<topic>.jsonl`; a topic whose parts hold no records has an empty one.

    Raises:
        EnvironmentFault: AB720, a file is there already; nothing was read. AB721, one cannot be written.
        AnabranchError: what `counted` raises. There are no files then.
    """
    by_topic: dict[str, list[Part]] = {}
    for part in dict.fromkeys(parts):
        by_topic.setdefault(part.topic, []).append(part)
    files = {topic: folder / f"{topic}.jsonl" for topic in by_topic}
    _refuse_existing(files.values())
    unnamed: dict[str, Path] = {}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _reading(cluster, parts, seconds) as reader:
            for topic, wanted in by_topic.items():
                unnamed[topic] = _new_file(folder)
                _write(unnamed[topic], (line for part in wanted for line in map(_line, reader.records(part))))
        _refuse_existing(files.values())
        for topic, path in files.items():
            unnamed[topic].replace(path)
            del unnamed[topic]
        _sync_folder(folder)
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        remedy = "name a folder that may be written, on a disk with room"
        raise EnvironmentFault(Problem("AB721", str(folder), what, remedy)) from None
    finally:
        for path in unnamed.values():
            path.unlink(missing_ok=True)
    return files


def export_topic(
    cluster_from: Cluster, parts: Collection[Part], cluster_to: Cluster, topic: str, seconds: float = SECONDS
) -> int:
    """Write the records of some parts to an empty topic, or to a new one; return their number.

    Key, value, headers and timestamp stay; three more headers hold where a record was: `anabranch.topic`,
    `anabranch.partition` and `anabranch.offset`, as ASCII. A record goes to the partition of the number it came from,
    or the remainder where the topic has fewer. The client library writes the time of the export for a timestamp of 0.

    Args:
        cluster_from: where they are.
        parts: what is written; as in `counted`.
        cluster_to: where the topic is.
        topic: its name. Made, it keeps its records for ever.
        seconds: how long each cluster may be silent.

    Raises:
        EnvironmentFault: AB724, the topic holds records; nothing was written. AB725, a record was not stored; others
            were. AB726, the topic cannot be made, or does not appear in time.
        AnabranchError: what `counted` raises.
    """
    wanted = list(dict.fromkeys(parts))
    if not wanted:
        return 0
    partitions = ready(cluster_to, topic, 1 + max(part.partition for part in wanted), seconds)
    store = Store(cluster_to, topic, seconds)
    with _reading(cluster_from, wanted, seconds) as reader:
        for part in wanted:
            for message in reader.records(part):
                store.put(message, part.partition % partitions)
    return store.stored()


class _Reader:
    """Reads parts whose ends are known and readable."""

    def __init__(self, cluster: Cluster, ends: dict[Part, tuple[int, int]], seconds: float) -> None:
        self._cluster = cluster
        self._ends = ends
        self._seconds = seconds
        self._record_reader = RecordReader(cluster, committed=True, seconds=seconds)

    def records(self, part: Part) -> Iterator[Message]:
        """Yield the records of a part."""
        at, end = self._ends[part]
        deadline = time.monotonic() + self._seconds
        while at < end:
            for message in self._record_reader.messages(part.topic, part.partition, at, end):
                offset = message.offset() or 0
                if message.error() is not None:
                    # A new leader may report an earlier log end for a moment.
                    at = max(at, offset)
                    break
                if offset >= at:
                    yield message
                    at, deadline = offset + 1, time.monotonic() + self._seconds
            else:
                return
            if time.monotonic() > deadline:
                what = f"topic {part.topic} partition {part.partition} cannot be read beyond offset {at}"
                raise unreachable(self._cluster, what)
            time.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        self._record_reader.close()


@contextmanager
def _reading(cluster: Cluster, parts: Collection[Part], seconds: float) -> Iterator[_Reader]:
    reader = _Reader(cluster, _readable(cluster, parts, seconds), seconds)
    try:
        yield reader
    finally:
        reader.close()


def _readable(cluster: Cluster, parts: Collection[Part], seconds: float) -> dict[Part, tuple[int, int]]:
    """Return the first and end offset to read of each part, after transactions that are open in it have ended."""
    logs = {(part.topic, part.partition) for part in parts if part.first < part.end}
    asker = ClusterLookup(cluster, cluster.clients.admin.patience(seconds))
    deadline = time.monotonic() + seconds
    try:
        # ListOffsets leaves out topics that do not exist or are not visible.
        there = asker.topics({topic for topic, _ in logs})
        missing = {log for log in logs if log[0] not in there or log[1] >= there[log[0]].partitions}
        whole = {} if missing else asker.bounds(logs)
        if missing := missing or logs - whole.keys():
            raise EnvironmentFault([_no_partition(cluster, *log) for log in sorted(missing)])
        found = {
            part: (max(part.first, whole[log].start), min(part.end, whole[log].end))
            for part in parts
            if (log := (part.topic, part.partition)) in whole
        }
        waiting = {part for part, (first, end) in found.items() if first < end}
        while True:
            stable = asker.bounds({(part.topic, part.partition) for part in waiting})
            waiting = {
                part
                for part in waiting
                if (log := (part.topic, part.partition)) not in stable or stable[log].stable < found[part][1]
            }
            if not waiting:
                break
            if time.monotonic() > deadline:
                raise EnvironmentFault([_unended(cluster, part) for part in sorted(waiting, key=_place)])
            time.sleep(_PAUSE_SECONDS)
    finally:
        asker.close()
    return {part: found.get(part, (part.first, part.first)) for part in parts}


def _place(part: Part) -> tuple[str, int, int]:
    return part.topic, part.partition, part.first


def _no_partition(cluster: Cluster, topic: str, partition: int) -> Problem:
    where = f"{cluster.where}, topic {topic}, partition {partition}"
    what = f"there is no such partition, or {cluster.user} is not allowed DESCRIBE on it"
    return Problem("AB722", where, what, "name one that is there, or grant DESCRIBE")


def _unended(cluster: Cluster, part: Part) -> Problem:
    return Problem(
        "AB723",
        f"{cluster.where}, topic {part.topic}, partition {part.partition}",
        f"a transaction that began before offset {part.end} is open: which records there are is not settled",
        "end its producer, or wait until the cluster aborts it (transaction.timeout.ms), then run it again",
    )


def _refuse_existing(files: Collection[Path]) -> None:
    there = [path for path in files if path.exists() or path.is_symlink()]
    if there:
        remedy = "name another folder, or move it away"
        raise EnvironmentFault([Problem("AB720", str(path), "is there already", remedy) for path in there])


def _new_file(folder: Path) -> Path:
    # A topic's name may be as long as a file's can be.
    number, name = tempfile.mkstemp(prefix=".anabranch-", suffix=".part", dir=folder)
    os.close(number)
    return Path(name)


def _write(path: Path, lines: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as opened:
        for line in lines:
            opened.write(line)
            opened.write("\n")
        opened.flush()
        os.fsync(opened.fileno())


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _line(message: Message) -> str:
    kind, timestamp = message.timestamp()
    known = _TYPES.get(kind) if timestamp >= 0 else None
    return json.dumps(
        {
            "topic": message.topic(),
            "partition": message.partition(),
            "offset": message.offset(),
            "timestamp": None if known is None else timestamp,
            "timestamp_type": known,
            "key": _encoded(message.key()),
            "value": _encoded(message.value()),
            "headers": [[name, _encoded(value)] for name, value in kept_headers(message)],
        },
        ensure_ascii=False,
        separators=(",", ":"),
    )


def _encoded(data: Any) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")
