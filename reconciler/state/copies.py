"""The records of copies, in a journal of the topology at the target: source topic ids and shifted runs.

The takeover reads and writes them, one for each remote partition; the translation of offsets reads them. They hold no
position.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import KafkaError, Message

from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.runs import CopyRecord
from reconciler.state.confluent.shared import Shared
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.follower import Follower
from reconciler.state.journals.following import take_in
from reconciler.state.journals.home import JournalPlace
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.shared_call import SharedCall

_TIMEOUT = 4.0
# For so long only what was appended is read. From time to time all is: of what compaction has removed, and of a topic
# that was made anew, nothing is appended.
_WHOLE_EVERY = 60.0

Ids = tuple[str | None, str | None]
"""Ids of an original and of a remote topic; None where brokers have none."""


def _key(flow: str, remote: str, partition: int) -> str:
    return f"{flow}/{remote}/{partition}"


class _Posted(NamedTuple):
    """A value that was posted, and what may be stored where it was lost: earlier ones, and the value before them."""

    value: Value
    before: tuple[Value | None, ...]


class _Snapshot:
    """The values as they were read at one time, and what was written since.

    Args:
        values: the newest value of every key.
    """

    def __init__(self, values: dict[str, Value]) -> None:
        self.values = values
        self._lock = threading.Lock()
        self._flows: dict[tuple[str, int], list[str]] | None = None
        self._ids: dict[str, dict[Ids, set[int]]] | None = None

    def flows(self) -> Mapping[tuple[str, int], Sequence[str]]:
        """Return which flows have a record of a remote partition; built at the first use."""
        with self._lock:
            if self._flows is None:
                self._flows = {}
                for key in self.values:
                    _add_flow(self._flows, key)
            return self._flows

    def ids(self, flow: str, remote: str) -> Mapping[Ids, Collection[int]]:
        """Return partitions by ids; built at the first use, then kept up, as each opening of a partition reads it."""
        with self._lock:
            if self._ids is None:
                self._ids = {}
                for key, value in self.values.items():
                    copy, _, number = key.rpartition("/")
                    if number.isdecimal():
                        _note(self._ids, copy, int(number), value)
            return self._ids.get(f"{flow}/{remote}", {})

    def keep(self, key: str, value: Value | None) -> None:
        """Take in a value that was written, or None for one that was removed."""
        copy, _, number = key.rpartition("/")
        with self._lock:
            is_new = key not in self.values
            if value is None:
                self.values.pop(key, None)
                self._flows = None
            else:
                self.values[key] = value
                if is_new and self._flows is not None:
                    _add_flow(self._flows, key)
            if self._ids is None or not number.isdecimal():
                return
            known = self._ids.get(copy, {})
            for ids, partitions in list(known.items()):
                partitions.discard(int(number))
                if not partitions:
                    del known[ids]
            if value is not None:
                _note(self._ids, copy, int(number), value)


class Copies:
    """The copy records of a topology at one target cluster.

    Args:
        cluster: the target.
        topology: name of the topology.
    """

    def __init__(self, cluster: Cluster, topology: str) -> None:
        self._journal = Journal(cluster, JournalPlace(topology, "copies"), _TIMEOUT)
        self._read = SharedCall(self._refresh)
        self._follower: Follower | None = None
        # What was read, by key, and when all is to be read again (monotonic seconds).
        self._stored: dict[str, Value] = {}
        self._whole_at = 0.0
        self._seen = _Snapshot({})
        # What was posted and is not known to be stored, by key.
        self._posted: dict[str, _Posted] = {}
        # What was written since the last read began, by key.
        self._since: dict[str, Value] = {}
        self._lock = threading.Lock()

    @classmethod
    def shared(cls, cluster: Cluster, topology: str) -> Copies:
        """Return those that this process shares, to be read alone and not closed; arguments are those of the class.

        They live as long as something holds them.
        """
        return _shared.get((cluster, topology), lambda: cls(cluster, topology))

    def refresh(self) -> None:
        """Read all that is stored now, behind what was posted before; what an outage lost of that is stored again.

        Threads that call it at the same time share one read.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        self._read()

    def _refresh(self) -> None:
        if self._follower is None:
            self._follower = self._journal.follow(polls=False)
        if self._posted:
            self._journal.flush()
        with self._lock:
            lost = dict(self._posted)
            self._since.clear()
        # Until the end of this, all is to be read again: an error may come behind what was read.
        now, whole_at, self._whole_at = time.monotonic(), self._whole_at, 0.0
        news = self._read_appended(self._follower) if now < whole_at else None
        if news is None:
            self._stored, whole_at = self._follower.catch_up(), now + _WHOLE_EVERY
        # A partition of a recreated topic is refused by the records of the others: none of them may be missing. Where
        # another process has stored a record meanwhile, that one holds.
        again = {key: posted.value for key, posted in lost.items() if self._stored.get(key) in posted.before}
        stored: dict[str, Value] = {}
        while again:
            self._journal.write_all(again)
            stored |= again
            with self._lock:
                # What another thread has posted meanwhile may stand before it.
                again = {key: self._since[key] for key in again if self._since.get(key, again[key]) != again[key]}
        for key, posted in lost.items():
            self._is_stored(key, posted)
        # Other threads may have written some while this one read.
        with self._lock:
            if news is None:
                self._seen = _Snapshot({**self._stored, **stored, **self._since})
            else:
                for key in (*news, *lost):
                    self._seen.keep(key, self._since.get(key, stored.get(key, self._stored.get(key))))
        self._whole_at = whole_at

    def _read_appended(self, follower: Follower) -> Collection[str] | None:
        """Take in what was written since the last read; return its keys, or None where all is to be read again."""
        news = follower.appended()
        if news is not None:
            take_in(self._stored, news.items())
        return news

    def get(self, flow: str, remote: str, partition: int) -> CopyRecord | None:
        """Return the record of one remote partition as it was read or written last; None when there is none."""
        value = self._seen.values.get(_key(flow, remote, partition))
        return None if value is None else CopyRecord.from_json(value)

    def of_others(self, flow: str, remote: str, partition: int) -> dict[str, CopyRecord]:
        """Return what other flows than this one have on record of a remote partition, by flow, as it was read last."""
        seen = self._seen
        return {
            name: CopyRecord.from_json(value)
            for name in tuple(seen.flows().get((remote, partition), ()))
            if name != flow and (value := seen.values.get(_key(name, remote, partition))) is not None
        }

    def flows(self) -> Mapping[tuple[str, int], Sequence[str]]:
        """Return which flows have a record of a remote partition, as it was read last."""
        return self._seen.flows()

    def ids(self, flow: str, remote: str) -> Mapping[Ids, Collection[int]]:
        """Return which partitions of a remote topic are on record, by the ids of the original and of the remote topic.

        As it was read or written last.
        """
        return self._seen.ids(flow, remote)

    def put(self, flow: str, remote: str, partition: int, record: CopyRecord) -> None:
        """Store a record and wait until it is stored.

        Raises:
            EnvironmentFault: AB310 or AB311, it is not stored.
        """
        key, value = _key(flow, remote, partition), record.to_json()
        self._journal.write(key, value)
        with self._lock:
            # It is behind whatever was posted before.
            self._posted.pop(key, None)
            self._since[key] = value
            self._seen.keep(key, value)

    def post(self, flow: str, remote: str, partition: int, record: CopyRecord) -> None:
        """Store a record without waiting; what an outage loses of it is stored by the next `refresh`."""
        key, value = _key(flow, remote, partition), record.to_json()
        with self._lock:
            earlier = self._posted.get(key)
            before = (self._seen.values.get(key),) if earlier is None else (*earlier.before, earlier.value)
            self._posted[key] = posted = _Posted(value, before)
            self._since[key] = value
            self._seen.keep(key, value)

        def note(error: KafkaError | None, _message: Message) -> None:
            if error is None:
                self._is_stored(key, posted)

        self._journal.post(key, value, note)

    def _is_stored(self, key: str, posted: _Posted) -> None:
        """Forget that a value was posted, unless another was posted behind it."""
        with self._lock:
            if self._posted.get(key) is posted:
                del self._posted[key]

    def flush(self) -> None:
        """Wait until what was posted is stored or given up."""
        # A producer that is dropped loses what it has not sent: for a new copy that would be its only record.
        self._journal.flush()

    def close(self) -> None:
        """Store what was posted, and close the connection."""
        self.flush()
        if self._follower is not None:
            self._follower.close()


def _add_flow(known: dict[tuple[str, int], list[str]], key: str) -> None:
    # Capabilities of the target are in the same journal.
    match key.rsplit("/", 2):
        case [name, topic, number] if number.isdecimal():
            known.setdefault((topic, int(number)), []).append(name)


def _note(known: dict[str, dict[Ids, set[int]]], copy: str, partition: int, value: Value) -> None:
    ids = value.get("source_id"), value.get("target_id")
    known.setdefault(copy, {}).setdefault(ids, set()).add(partition)


_shared: Shared[Copies] = Shared()
