"""One follower of a journal for several readers, each in a thread of its own: the tasks of a process.

A consumer of confluent-kafka has half a dozen threads and connections; those of a hundred flows took more of a
processor than the flows did. A reader is used like a `Follower`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator

from reconciler.state.journals import following
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.follower import Follower
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.shared_call import SharedCall

# What has arrived is taken from the client as seldom as this (seconds), however many readers there are.
_TAKE_EVERY = 0.05


class SharedFollower:
    """Follows a journal for several readers.

    Args:
        journal: which one.
        patience: seconds that the cluster may take to answer with the end of the journal.
    """

    def __init__(self, journal: Journal, patience: float) -> None:
        self._journal = journal
        self._patience = patience
        # Held while the follower, the values or what waits for readers is used.
        self._lock = threading.Lock()
        self._follower: Follower | None = None
        self._values: dict[str, Value] = {}
        self._readers: list[JournalReader] = []
        self._taken_at = 0.0
        self._read_to_end = SharedCall(self._read_up)

    def reader(self) -> JournalReader:
        """Return a new reader; the others go on."""
        return JournalReader(self)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._follower is not None:
                self._follower.close()
                self._follower = None

    def _read_up(self) -> None:
        with self._lock:
            if self._follower is None:
                self._follower, self._values = following.begin(self._journal)
            else:
                self._pass_on(self._follower.arrived(self._patience))

    def _pass_on(self, arrived: Iterator[tuple[str, Value | None]]) -> None:
        for key, value in arrived:
            following.take_in(self._values, [(key, value)])
            for reader in self._readers:
                reader.arrived.append((key, value))

    def begin(self, reader: JournalReader) -> tuple[dict[str, Value], int]:
        """Return the newest values up to the end as it is now, and the offset behind them; called by readers."""
        self._read_to_end()
        with self._lock:
            assert self._follower is not None, "it has been read"
            if reader not in self._readers:
                self._readers.append(reader)
            reader.arrived.clear()
            return dict(self._values), self._follower.next_offset

    def take(self, reader: JournalReader) -> tuple[list[tuple[str, Value | None]], int]:
        """Return what has arrived for a reader, and the offset behind it; called by readers."""
        with self._lock:
            assert self._follower is not None, "its reader has begun"
            if (now := time.monotonic()) - self._taken_at >= _TAKE_EVERY:
                self._taken_at = now
                self._pass_on(self._follower.arrived())
            arrived = list(reader.arrived)
            reader.arrived.clear()
            return arrived, self._follower.next_offset

    def leave(self, reader: JournalReader) -> None:
        """Forget a reader; called by readers."""
        with self._lock:
            if reader in self._readers:
                self._readers.remove(reader)


class JournalReader:
    """Reads a journal from its start, then what is appended, through a follower that others use as well.

    Args:
        shared: the follower.

    Attributes:
        next_offset: up to where it has read.
        arrived: what was read and not taken yet; only `shared` changes it.
    """

    def __init__(self, shared: SharedFollower) -> None:
        self._shared = shared
        self.next_offset = 0
        self.arrived: deque[tuple[str, Value | None]] = deque()

    def catch_up(self) -> dict[str, Value]:
        """Return the newest value of every key, up to the end as it is now.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        values, self.next_offset = self._shared.begin(self)
        return values

    def poll(self) -> list[tuple[str, Value | None]]:
        """Return what has arrived, without waiting.

        Raises:
            EnvironmentFault: AB311, reading is refused.
        """
        arrived, self.next_offset = self._shared.take(self)
        return arrived

    def close(self) -> None:
        """Stop reading; the others go on."""
        self._shared.leave(self)
