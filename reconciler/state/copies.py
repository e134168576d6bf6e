"""The records of copies, in a journal of the topology at the target: source topic ids and shifted runs.

The takeover reads and writes them, one for each remote partition; the translation of offsets reads them. They hold no
position.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.runs import CopyRecord
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.follower import Follower
from reconciler.state.journals.home import JournalPlace
from reconciler.state.journals.journal import Journal

_TIMEOUT = 4.0

Ids = tuple[str | None, str | None]
"""Ids of an original and of a remote topic; None where brokers have none."""


def _key(flow: str, remote: str, partition: int) -> str:
    return f"{flow}/{remote}/{partition}"


class Copies:
    """The copy records of a topology at one target cluster.

    Args:
        cluster: the target.
        topology: name of the topology.
    """

    def __init__(self, cluster: Cluster, topology: str) -> None:
        self._journal = Journal(cluster, JournalPlace(topology, "copies"), _TIMEOUT)
        self._follower: Follower | None = None
        self._values: dict[str, Value] = {}
        # Which flows have a record of a remote partition; built at the first use.
        self._flows: dict[tuple[str, int], list[str]] | None = None
        # By flow and remote topic; built at the first use and then kept up, as each opening of a partition reads it.
        self._ids: dict[str, dict[Ids, set[int]]] | None = None

    def refresh(self) -> None:
        """Read all that is stored now.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        if self._follower is None:
            self._follower = self._journal.follow(polls=False)
        self._values = self._follower.catch_up()
        self._flows = None
        self._ids = None

    def get(self, flow: str, remote: str, partition: int) -> CopyRecord | None:
        """Return the record of one remote partition as it was read or written last; None when there is none."""
        value = self._values.get(_key(flow, remote, partition))
        return None if value is None else CopyRecord.from_json(value)

    def of_others(self, flow: str, remote: str, partition: int) -> dict[str, CopyRecord]:
        """Return what other flows than this one have on record of a remote partition, by flow, as it was read last."""
        return {
            name: CopyRecord.from_json(self._values[_key(name, remote, partition)])
            for name in self.flows().get((remote, partition), ())
            if name != flow
        }

    def flows(self) -> Mapping[tuple[str, int], Sequence[str]]:
        """Return which flows have a record of a remote partition, as it was read last."""
        if self._flows is None:
            self._flows = {}
            # Another thread may store some meanwhile.
            for key in list(self._values):
                # Capabilities of the target are in the same journal.
                match key.rsplit("/", 2):
                    case [name, topic, number] if number.isdecimal():
                        self._flows.setdefault((topic, int(number)), []).append(name)
        return self._flows

    def ids(self, flow: str, remote: str) -> Mapping[Ids, Collection[int]]:
        """Return which partitions of a remote topic are on record, by the ids of the original and of the remote topic.

        As it was read or written last.
        """
        if self._ids is None:
            found: dict[str, dict[Ids, set[int]]] = {}
            for key, value in list(self._values.items()):
                copy, _, number = key.rpartition("/")
                if number.isdecimal():
                    _note(found, copy, int(number), value)
            self._ids = found
        return self._ids.get(f"{flow}/{remote}", {})

    def put(self, flow: str, remote: str, partition: int, record: CopyRecord) -> None:
        """Store a record and wait until it is stored.

        Raises:
            EnvironmentFault: AB310 or AB311, it is not stored.
        """
        value = record.to_json()
        self._journal.write(_key(flow, remote, partition), value)
        self._keep(flow, remote, partition, value)

    def post(self, flow: str, remote: str, partition: int, record: CopyRecord) -> None:
        """Store a record without waiting; an outage may lose it."""
        value = record.to_json()
        self._journal.post(_key(flow, remote, partition), value)
        self._keep(flow, remote, partition, value)

    def _keep(self, flow: str, remote: str, partition: int, value: Value) -> None:
        self._values[_key(flow, remote, partition)] = value
        if self._ids is not None:
            known = self._ids.get(f"{flow}/{remote}", {})
            for ids, partitions in list(known.items()):
                partitions.discard(partition)
                if not partitions:
                    del known[ids]
            _note(self._ids, f"{flow}/{remote}", partition, value)

    def close(self) -> None:
        """Store what was posted, and close the connection."""
        # A producer that is dropped loses what it has not sent: for a new copy that would be its only record.
        self._journal.flush()
        if self._follower is not None:
            self._follower.close()


def _note(known: dict[str, dict[Ids, set[int]]], copy: str, partition: int, value: Value) -> None:
    ids = value.get("source_id"), value.get("target_id")
    known.setdefault(copy, {}).setdefault(ids, set()).add(partition)
