"""Counts the requests of Kafka's protocol that pass between clients and one broker, by their kind.

Used by `control`. It stands between as a port of its own, which the broker tells its clients, and changes nothing.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections import Counter
from types import TracebackType

from reconciler.embedded.ports import HOST, PortLease

_CHUNK = 256 * 1024
_HEAD = struct.Struct(">ih")
# Kafka's numbers of requests (`ApiKeys`).
_KINDS = {
    0: "Produce",
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    8: "OffsetCommit",
    9: "OffsetFetch",
    10: "FindCoordinator",
    11: "JoinGroup",
    12: "Heartbeat",
    13: "LeaveGroup",
    14: "SyncGroup",
    15: "DescribeGroups",
    17: "SaslHandshake",
    18: "ApiVersions",
    19: "CreateTopics",
    22: "InitProducerId",
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    32: "DescribeConfigs",
    36: "SaslAuthenticate",
    37: "CreatePartitions",
    44: "IncrementalAlterConfigs",
    60: "DescribeCluster",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    75: "DescribeTopicPartitions",
}


class Tally:
    """One port that leads to one broker.

    Attributes:
        port: what clients connect to; set `upstream` to what the broker listens on before they do.
        counts: requests by kind, since the last `take`.
    """

    def __init__(self) -> None:
        self._lease = PortLease.take(1)
        self.port = self._lease.ports[0]
        self.upstream = 0
        self.counts: Counter[str] = Counter()
        self._open: set[socket.socket] = set()
        self._server: socket.socket | None = None

    def __enter__(self) -> Tally:
        self._server = socket.create_server((HOST, self.port))
        threading.Thread(target=self._accept, args=(self._server,), name="tally", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for one in (self._server, *tuple(self._open)):
            if one is not None:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()
        self._lease.release()

    def take(self) -> Counter[str]:
        """Return what was counted, and begin anew."""
        counts, self.counts = self.counts, Counter()
        return counts

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                client, _ = server.accept()
                broker = socket.create_connection((HOST, self.upstream))
            except OSError:
                if server.fileno() < 0:
                    return
                continue
            self._open |= {client, broker}
            for way in ((client, broker, True), (broker, client, False)):
                threading.Thread(target=self._carry, args=way, daemon=True).start()

    def _carry(self, here: socket.socket, there: socket.socket, counts: bool) -> None:
        rest = b""
        with contextlib.suppress(OSError):
            while data := here.recv(_CHUNK):
                there.sendall(data)
                if counts:
                    rest = self._count(rest + data)
        for one in (here, there):
            self._open.discard(one)
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _count(self, data: bytes) -> bytes:
        """Count the requests that are there whole, and return what follows them."""
        at = 0
        while len(data) - at >= _HEAD.size:
            size, key = _HEAD.unpack_from(data, at)
            if len(data) - at < 4 + size:
                break
            self.counts[_KINDS.get(key, f"request {key}")] += 1
            at += 4 + size
        return data[at:]
