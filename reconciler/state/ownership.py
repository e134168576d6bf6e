"""The ownership records of a target cluster, kept in the journal `anabranch-owned.internal`.

`observe` reads it, `provision` writes it; what it means is in `reconciler.model.ownership`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from reconciler.model.cluster import Cluster
from reconciler.model.ownership import OwnedTopic
from reconciler.state.journal import JOURNALS, OWNED, Journal, JournalTopic

INTERNAL_TOPICS: dict[str, JournalTopic] = {topic.name: topic for topic in JOURNALS}
"""The topics that our own state needs on every target, by name."""

_KIND = "topic"


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
        values = self._journal.read()
        records = (_from_value(value) for value in values.values() if value.get("kind") == _KIND)
        return {record.name: record for record in records}

    def write(self, records: Iterable[OwnedTopic]) -> None:
        """Store records, each over the one its topic had, and wait until they are stored.

        Raises:
            EnvironmentFault: AB311, the cluster did not take them.
            Unreachable: AB310, the cluster does not answer.
        """
        self._journal.write_all({f"{_KIND}/{record.name}": {"kind": _KIND} | asdict(record) for record in records})

    def forget(self, names: Iterable[str]) -> None:
        """Remove the records of topics that are gone, and wait until that is stored; errors are those of `write`."""
        self._journal.write_all({f"{_KIND}/{name}": None for name in names})


def _from_value(value: dict[str, Any]) -> OwnedTopic:
    return OwnedTopic(**{name: value[name] for name in OwnedTopic.__dataclass_fields__})
