"""The ownership records of a target cluster, kept in the journal `anabranch-owned.internal`.

`observe` reads it, `provision` writes it; what it means is in `reconciler.model.ownership`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import NamedTuple

from reconciler.model.binding import OwnedBinding
from reconciler.model.cluster import Cluster
from reconciler.model.ownership import OwnedTopic
from reconciler.state.journal import JOURNALS, OWNED, Journal, JournalTopic, Value

INTERNAL_TOPICS: dict[str, JournalTopic] = {topic.name: topic for topic in JOURNALS}
"""The topics that our own state needs on every target, by name."""

_TOPIC, _ACL = "topic", "acl"


class Records(NamedTuple):
    """What is ours on a cluster, whichever topology made it.

    Attributes:
        topics: by name.
        acls: that were granted.
        others: the values of the journal that speak of something else.
    """

    topics: dict[str, OwnedTopic]
    acls: tuple[OwnedBinding, ...]
    others: tuple[Value, ...] = ()


class Ownership:
    """The ownership records of one cluster.

    Args:
        cluster: the target.
        timeout: seconds to wait for the cluster in each call.
    """

    def __init__(self, cluster: Cluster, timeout: float = 10.0) -> None:
        self._journal = Journal(cluster, OWNED, timeout)

    def read(self) -> dict[str, OwnedTopic]:
        """Return the records by topic name; empty when nothing was ever applied there.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        return self.read_all().topics

    def read_all(self) -> Records:
        """Return all records.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        values = self._journal.read().values()
        topics = [OwnedTopic.from_json(value) for value in values if value.get("kind") == _TOPIC]
        acls = tuple(OwnedBinding.from_json(value) for value in values if value.get("kind") == _ACL)
        others = tuple(value for value in values if value.get("kind") not in (_TOPIC, _ACL))
        return Records({record.name: record for record in topics}, acls, others)

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
        """Take records of ACLs away, and wait until they are.

        Raises:
            EnvironmentFault: AB311, the cluster did not take it.
            Unreachable: AB310, the cluster does not answer.
        """
        self._journal.write_all(dict.fromkeys(map(_key, records)))


def _key(record: OwnedBinding) -> str:
    """Return the key of an ACL's record: several topologies may have granted one ACL."""
    one = record.binding
    pattern = "prefixed" if one.pattern.prefixed else "literal"
    who = (one.principal, one.host, one.operation, one.permission)
    return f"{_ACL}/{json.dumps((record.topology, one.kind, pattern, one.pattern.name, *who))}"
