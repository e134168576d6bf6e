"""Groups of consumers as others leave them on a cluster: with offsets, with members, of other kinds."""

from __future__ import annotations

import csv
import io
import socket
import struct
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from confluent_kafka import Consumer
from kafka import OffsetAndMetadata, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NoError, NotCoordinatorError

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create
from tests.support.replicator.copying import fill

SECONDS = 300.0
NOT_YET = (CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError)
Log = tuple[str, int]
Said = tuple[int, str, str]


class Committed(NamedTuple):
    offset: int
    metadata: str
    leader_epoch: int


Run = Callable[..., Said]
"""Runs a command of `offsets`; returns its exit code, stdout, and stderr in one line."""

_SHARE_GROUP_HEARTBEAT, _VERSION = 76, 1
_NEW_MEMBER = 0


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def hundred(cluster: EmbeddedCluster, topic: str, partitions: int = 1) -> None:
    """Make a topic with a hundred records in each partition."""
    create(cluster, topic, partitions)
    fill(cluster, topic, 100 * partitions, partitions)


def consumer(cluster: EmbeddedCluster, group: str, **settings: object) -> Consumer:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return Consumer(
        cluster.client_config() | {"group.id": group, "enable.auto.commit": False, "log_level": "2"} | named
    )


def leave_behind(
    cluster: EmbeddedCluster, group: str, offsets: Mapping[Log, int], metadata: str = "", epoch: int | None = None
) -> None:
    """Let a group have committed offsets, and no members."""
    places = {
        TopicPartition(*log): OffsetAndMetadata(offset, metadata, -1 if epoch is None else epoch)
        for log, offset in offsets.items()
    }
    client = _client(cluster)
    try:
        deadline = time.monotonic() + SECONDS
        # The first group of a cluster waits until its topic of offsets is made.
        while not _is_committed(client, group, places):
            assert time.monotonic() < deadline, "it was not committed"
            time.sleep(0.1)
    finally:
        client.close()


def _client(cluster: EmbeddedCluster) -> KafkaAdminClient:
    config = cluster.client_config()
    secured = {}
    if "sasl.mechanism" in config:
        secured = {
            "security_protocol": config["security.protocol"],
            "sasl_mechanism": config["sasl.mechanism"],
            "sasl_plain_username": config["sasl.username"],
            "sasl_plain_password": config["sasl.password"],
        }
    return KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","), **secured)


def _is_committed(client: KafkaAdminClient, group: str, places: Mapping[TopicPartition, OffsetAndMetadata]) -> bool:
    try:
        answer = set(client.alter_group_offsets(group, places).values())
    except NOT_YET:
        return False
    assert answer <= {NoError, *NOT_YET}, answer
    return answer == {NoError}


def offsets_of(cluster: EmbeddedCluster, group: str) -> dict[Log, int]:
    """Return what a group has committed."""
    return {log: place.offset for log, place in places_of(cluster, group).items()}


def places_of(cluster: EmbeddedCluster, group: str) -> dict[Log, Committed]:
    """Return what a group has committed, with what was said with it, as kafka-python's own client reads it."""
    client = _client(cluster)
    try:
        found = client.list_group_offsets({group: None})[group]
    finally:
        client.close()
    return {
        (place.topic, place.partition): Committed(one.offset, one.metadata, one.leader_epoch)
        for place, one in found.items()
        if one.offset >= 0
    }


@contextmanager
def member_of(cluster: EmbeddedCluster, group: str, topics: Sequence[str], protocol: str = "classic") -> Iterator[None]:
    """Let a group have a member that has partitions, until the end of the block."""
    one = consumer(cluster, group, group_protocol=protocol)
    one.subscribe(list(topics))
    deadline = time.monotonic() + SECONDS
    while not one.assignment():
        assert time.monotonic() < deadline, "it was assigned nothing"
        one.poll(0.1)
    try:
        yield
    finally:
        one.close()


def join_share_group(cluster: EmbeddedCluster, group: str, topic: str) -> None:
    """Let a share group (KIP-932) have a member, which confluent-kafka has no client for; it is soon dropped."""
    host, _, port = cluster.bootstrap.split(",")[0].rpartition(":")
    body = b"".join(
        (
            _compact(group),
            _compact(str(uuid.uuid4())),
            struct.pack(">i", _NEW_MEMBER),
            b"\x00",  # no rack
            b"\x02" + _compact(topic),
            b"\x00",
        )
    )
    name = b"tests"
    header = struct.pack(">hhih", _SHARE_GROUP_HEARTBEAT, _VERSION, 1, len(name)) + name + b"\x00"
    deadline = time.monotonic() + SECONDS
    with socket.create_connection((host, int(port)), SECONDS) as connection:
        while True:
            connection.sendall(struct.pack(">i", len(header + body)) + header + body)
            (length,) = struct.unpack(">i", _read(connection, 4))
            # Correlation id, an empty set of tags, and the throttle time stand before it.
            (code,) = struct.unpack_from(">h", _read(connection, length), 4 + 1 + 4)
            if code == 0:
                return
            assert time.monotonic() < deadline, f"error {code}"
            time.sleep(0.2)


def _compact(text: str) -> bytes:
    assert len(text) < 127, "its length takes one byte"
    return bytes([len(text.encode()) + 1]) + text.encode()


def _read(connection: socket.socket, count: int) -> bytes:
    read = b""
    while len(read) < count:
        more = connection.recv(count - len(read))
        assert more, "the broker closed the connection"
        read += more
    return read
