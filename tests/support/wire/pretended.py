"""A pretended broker: it says which versions it knows and who else is there, and notes what it is asked."""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from types import TracebackType

PRODUCE, FETCH, METADATA, API_VERSIONS = 0, 1, 3, 18
_UNSUPPORTED_VERSION = 35
_OLDEST_WORDS = 2
_SOON = 10.0


class Asked:
    """A request that somebody has to answer.

    Attributes:
        key: what it asks for.
        version: of it.
        number: its correlation id.
        body: what stands behind these.
    """

    def __init__(self, connection: socket.socket, key: int, version: int, number: int, body: bytes) -> None:
        self._connection = connection
        self.key, self.version, self.number, self.body = key, version, number, body

    def frame(self, body: bytes, number: int | None = None) -> bytes:
        """Return an answer as it goes over the line; by `number` one to another request."""
        return struct.pack(">iix", len(body) + 5, self.number if number is None else number) + body

    def answer(self, body: bytes) -> None:
        """Answer it."""
        self.say(self.frame(body))

    def say(self, data: bytes) -> None:
        """Send bytes, whatever they are."""
        self._connection.sendall(data)

    def hang_up(self) -> None:
        """End the connection that it came over."""
        self._connection.shutdown(socket.SHUT_RDWR)


class PretendedBroker:
    """Answers ApiVersions and Metadata; ends the connection at all else, as brokers do at unknown versions.

    Args:
        brokers: the cluster's, as id and port; asked for each answer.
        produce: the newest version of produce requests that it knows.
        fetch: likewise.
        keeps: whether it keeps all else instead, for whoever takes it with `asked`.
        topics: names of topics that it tells of, without partitions.

    Attributes:
        port: where it listens, on loopback.
        seen: requests that were sent to it, as key and version.
    """

    def __init__(
        self,
        brokers: Callable[[], Sequence[tuple[int, int]]],
        *,
        produce: int = 13,
        fetch: int = 17,
        keeps: bool = False,
        topics: Sequence[str] = (),
    ) -> None:
        self.seen: list[tuple[int, int]] = []
        self._kept: queue.Queue[Asked] = queue.Queue()
        self._keeps = keeps
        self._brokers, self._topics = brokers, topics
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

    def asked(self) -> Asked:
        """Return the request that came first of those that were kept and not taken yet; wait for one."""
        return self._kept.get(timeout=_SOON)

    @property
    def is_asked(self) -> bool:
        """Whether there is one."""
        return not self._kept.empty()

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
                rest = words.read(size - 8)
                self.seen.append((key, version))
                if key not in (API_VERSIONS, METADATA):
                    if not self._keeps:
                        return
                    self._kept.put(Asked(connection, key, version, number, rest))
                    continue
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
        topics = b"".join(struct.pack(">h", 0) + _text(name) + struct.pack(">bi", 0, 0) + end for name in self._topics)
        controller = struct.pack(">i", brokers[0][0] if brokers else -1)
        counted = struct.pack(">i", len(self._topics)) + topics
        return struct.pack(">ii", 0, len(brokers)) + told + _text("c") + controller + counted + end


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()
