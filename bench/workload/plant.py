"""Plants log segments in the data folder of a stopped broker: millions of one-record batches in seconds.

`race` makes the topic of one-record batches with it, `padding` a log that starts far from 0. A broker takes such
batches from a producer one request at a time, some thousands a second; what it would have on disk afterwards is
written here directly: the same bytes that a producer without linger and idempotence leaves. The broker's
own recovery rebuilds indexes and checkpoints and checks every CRC at its start.

It must be pointed only at embedded clusters, and at topics with one replica that stands on the node.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from pathlib import Path

from bench.workload.load import Load, orders
from reconciler.embedded import EmbeddedCluster
from reconciler.records.batch import HEADER, HEADER_SIZE, MAGIC
from reconciler.records.checksum import crc32c
from reconciler.records.codecs import NAMES, NONE, pack
from reconciler.records.varint import signed

_OFFSET = struct.Struct(">q")
_CHECKED = struct.Struct(">hiqqqhii")
_LOG_OVERHEAD = 12
_CHECKED_FROM = 21
# Below the broker's segment size of 1 GiB, and whole batches.
_SEGMENT_BYTES = 512 << 20
_CHUNK = 4096
_KEPT = {"partition.metadata"}
_CLEAN = ".kafka_cleanshutdown"


def plant(cluster: EmbeddedCluster, topic: str, load: Load, start: int = 0) -> None:
    """Stop node 1, give each partition of an empty topic its records, each a batch of its own, and start it again.

    Args:
        cluster: where the topic is, with one replica, on node 1.
        topic: its name.
        load: how many records of which size in how many partitions.
        start: the offset at which every log starts.
    """
    broker = cluster.broker()
    cluster.stop_broker()
    now = int(time.time() * 1000)
    codec = NAMES.index(load.codec)
    batches = [one_record_batch(key, value, now, codec) for key, value in orders(load.size, seed=0)]
    share, rest = divmod(load.records, load.partitions)
    for number in range(load.partitions):
        folder = broker.data / f"{topic}-{number}"
        for path in folder.iterdir():
            if path.name not in _KEPT:
                path.unlink()
        write_segments(folder, batches, start, share + (number < rest))
    # Without it the broker recovers the logs: it reads every batch and builds the indexes.
    (broker.data / _CLEAN).unlink(missing_ok=True)
    cluster.start_broker()


def write_segments(folder: Path, batches: list[bytes], start: int, count: int) -> None:
    """Write `count` one-record batches into segments that begin at the offset `start`; batches repeat in turn."""
    offset, end = start, start + count
    while True:
        with (folder / f"{offset:020d}.log").open("wb") as segment:
            size = 0
            while offset < end and size < _SEGMENT_BYTES:
                until = min(end, offset + _CHUNK)
                size += segment.write(b"".join(_placed(batches, offset, until)))
                offset = until
        if offset >= end:
            return


def one_record_batch(key: bytes, value: bytes, timestamp: int, codec: int = NONE) -> bytes:
    """Return a batch of one record at offset 0, as a producer without idempotence sends it and leader epoch 0 keeps it.

    Args:
        key: the record's key.
        value: its value.
        timestamp: milliseconds.
        codec: Kafka's number of the codec.
    """
    body = b"\x00\x00\x00" + signed(len(key)) + key + signed(len(value)) + value + signed(0)
    record = bytes(pack(codec, signed(len(body)) + body))
    checked = _CHECKED.pack(codec, 0, timestamp, timestamp, -1, -1, -1, 1) + record
    crc = crc32c(checked)
    length = HEADER_SIZE - _LOG_OVERHEAD + len(record)
    head = HEADER.pack(0, length, 0, MAGIC, crc, codec, 0, timestamp, timestamp, -1, -1, -1, 1)
    return head[:_CHECKED_FROM] + checked


def _placed(batches: list[bytes], start: int, end: int) -> Iterator[bytes]:
    for offset in range(start, end):
        yield _OFFSET.pack(offset)
        # The checksum does not cover the offset.
        yield batches[offset % len(batches)][_OFFSET.size :]
