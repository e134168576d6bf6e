"""A pretended broker: it says which versions it knows and who else is there, and notes what it is asked."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from types import TracebackType

PRODUCE, FETCH, METADATA, API_VERSIONS = 0, 1, 3, 18
_UNSUPPORTED_VERSION = 35
_OLDEST_WORDS = 2


class PretendedBroker:
    """Answers ApiVersions and Metadata; ends the connection at all else, as brokers do at unknown versions.

    Args:
        brokers: the cluster's, as id and port; asked for each answer.
        produce: the newest version of produce requests that it knows.
        fetch: likewise.

    Attributes:
        port: where it listens, on loopback.
        seen: requests that were sent to it, as key and version.
    """

    def __init__(self, brokers: Callable[[], Sequence[tuple[int, int]]], *, produce: int = 13, fetch: int = 17) -> None:
        self.seen: list[tuple[int, int]] = []
        self._brokers = brokers
        self._known = {API_VERSIONS: _OLDEST_WORDS, METADATA: 8, FETCH: fetch, PRODUCE: produce}
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> PretendedBroker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """Listen no more, and end all connections."""
        with contextlib.suppress(OSError):
            # Closing alone does not wake who accepts.
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for one in self._open:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self._open.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as words:
            while len(head := words.read(12)) == 12:
                size, key, version, number = struct.unpack(">ihhi", head)
                words.read(size - 8)
                self.seen.append((key, version))
                if key not in (API_VERSIONS, METADATA):
                    return
                body = self._versions(version) if key == API_VERSIONS else self._metadata(version)
                connection.sendall(struct.pack(">ii", len(body) + 4, number) + body)

    def _versions(self, version: int) -> bytes:
        is_known = version <= _OLDEST_WORDS
        known = b"".join(struct.pack(">hhh", key, 0, newest) for key, newest in self._known.items())
        head = struct.pack(">hi", 0 if is_known else _UNSUPPORTED_VERSION, len(self._known))
        return head + known + (struct.pack(">i", 0) if is_known and version else b"")

    def _metadata(self, version: int) -> bytes:
        brokers = self._brokers()
        told = b"".join(
            struct.pack(">i", one) + _text("127.0.0.1") + struct.pack(">ih", port, -1) for one, port in brokers
        )
        end = struct.pack(">i", 0) if version == self._known[METADATA] else b""
        return struct.pack(">ii", 0, len(brokers)) + told + _text("c") + struct.pack(">ii", brokers[0][0], 0) + end


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()
