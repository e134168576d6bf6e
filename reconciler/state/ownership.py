"""The ownership records of a target cluster, kept in a journal of each topology, which only its `apply` writes.

`observe` reads them, `provision` writes them; what they mean is in `reconciler.model.recorded.ownership`. A record
counts only where its topology's own journal has it, or the shared one for a topology whose records were not moved.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from typing import NamedTuple

from reconciler.model.acls.binding import OwnedBinding
from reconciler.model.base.errors import EnvironmentFault, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import state_names, topology_of_owned
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.state.journals import home
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import SHARED, JournalRecord, own

_TOPIC, _ACL = "topic", "acl"
_AT_ONCE = 8


class Records(NamedTuple):
    """What is on record on a cluster.

    Attributes:
        topics: by name.
        acls: that were granted.
        others: all other values of the topology's journal.
    """

    topics: dict[str, OwnedTopic]
    acls: tuple[OwnedBinding, ...]
    others: tuple[Value, ...] = ()


class Ownership:
    """The ownership records of a topology on one cluster.

    Args:
        cluster: the target.
        topology: name of the topology.
        timeout: seconds to wait for the cluster in each call.
    """

    def __init__(self, cluster: Cluster, topology: str, timeout: float = 10.0) -> None:
        self._cluster = cluster
        self._topology = topology
        self._timeout = timeout
        self._journal = Journal(cluster, home.JournalPlace(topology, "owned"), timeout)

    def read(self) -> dict[str, OwnedTopic]:
        """Return the records by topic name; empty when nothing was ever applied there.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        return self.read_all().topics

    def read_all(self) -> Records:
        """Return all records of the topology's journal; in a shared one these are other topologies' as well.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        is_own = home.journals(self._cluster, self._topology, self._timeout).is_own
        values = self._journal.read().values()
        # A user that may write one topology's journal must not decide about another's.
        return _records([value for value in values if not is_own or value.get("topology") == self._topology])

    def read_everywhere(self, names: Collection[str]) -> Records:
        """Return what `read_all` does, and what journals of other topologies have, as far as they may be read.

        Of these a topic counts only where it exists: a name that nothing has is not taken by a record.

        Args:
            names: of all topics of the cluster that we may see.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading the topology's own journal is refused.
        """
        others = {name: one for name in sorted(names) if (one := topology_of_owned(name)) not in (None, self._topology)}
        moved = {one for one in others.values() if one is not None and state_names(one).status in names}
        ours = self.read_all()
        is_own = home.journals(self._cluster, self._topology, self._timeout).is_own
        elsewhere: list[tuple[JournalRecord, Callable[[Value], bool]]] = [
            (own(one).owned, partial(_is_there, one, names)) for one in others.values() if one is not None
        ]
        if is_own and SHARED.owned.name in names:
            elsewhere.append((SHARED.owned, partial(_is_of_others, moved | {self._topology})))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = list(pool.map(lambda one: self._foreign(*one), elsewhere))
        # Records that a moved topology has left in the shared journal do not count.
        kept = {name: one for name, one in ours.topics.items() if one.topology not in moved}
        acls = tuple(one for one in ours.acls if one.topology not in moved)
        topics = {name: one for part in found for name, one in part.topics.items()}
        # A topic that is on record here stays this topology's, whatever another journal claims.
        return Records(topics | kept, (*acls, *(one for part in found for one in part.acls)), ours.others)

    def _foreign(self, topic: JournalRecord, counts: Callable[[Value], bool]) -> Records:
        """Return the records of another journal that count; none where it may not be read."""
        try:
            values = Journal(self._cluster, topic, self._timeout).read().values()
        except Unreachable:
            raise
        except EnvironmentFault:
            return Records({}, ())
        return _records([value for value in values if counts(value)])

    def write(self, records: Iterable[OwnedTopic]) -> None:
        """Store records, each over the one its topic had, and wait until they are stored.

        Raises:
            EnvironmentFault: AB311, the cluster did not take them.
            Unreachable: AB310, the cluster does not answer.
        """
        self._journal.write_all({f"{_TOPIC}/{record.name}": {"kind": _TOPIC} | asdict(record) for record in records})

    def forget(self, names: Iterable[str]) -> None:
        """Remove the records of topics that are gone, and wait until that is stored; errors are those of `write`."""
        self._journal.write_all({f"{_TOPIC}/{name}": None for name in names})

    def write_bindings(self, records: Iterable[OwnedBinding]) -> None:
        """Store records of ACLs and wait until they are stored.

        Raises:
            EnvironmentFault: AB311, the cluster did not take them.
            Unreachable: AB310, the cluster does not answer.
        """
        self._journal.write_all({_key(record): {"kind": _ACL} | asdict(record) for record in records})

    def forget_bindings(self, records: Iterable[OwnedBinding]) -> None:
        """Remove records of ACLs and wait until that is stored.

        Raises:
            EnvironmentFault: AB311, the cluster did not take it.
            Unreachable: AB310, the cluster does not answer.
        """
        self._journal.write_all(dict.fromkeys(map(_key, records)))


def _records(values: Collection[Value]) -> Records:
    topics = [OwnedTopic.from_json(value) for value in values if value.get("kind") == _TOPIC]
    acls = tuple(OwnedBinding.from_json(value) for value in values if value.get("kind") == _ACL)
    others = tuple(value for value in values if value.get("kind") not in (_TOPIC, _ACL))
    return Records({record.name: record for record in topics}, acls, others)


def _is_there(topology: str, names: Collection[str], value: Value) -> bool:
    """Return whether a record is of the journal's topology, and of a topic that exists or of no topic."""
    return value.get("topology") == topology and (value.get("kind") != _TOPIC or value.get("name") in names)


def _is_of_others(topologies: Collection[str], value: Value) -> bool:
    return value.get("topology") not in topologies


def _key(record: OwnedBinding) -> str:
    """Return the key of an ACL's record: several topologies may have granted one ACL."""
    one = record.binding
    pattern = "prefixed" if one.pattern.prefixed else "literal"
    access = (one.principal, one.host, one.operation, one.permission)
    return f"{_ACL}/{json.dumps((record.topology, one.kind, pattern, one.pattern.name, *access))}"
