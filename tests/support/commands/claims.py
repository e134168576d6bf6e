"""Claims of the lock of apply, as its journal holds them."""

from __future__ import annotations

from reconciler.model.declared.cluster import Cluster
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from tests.support.waiting import eventually


def wait_for_claims(target: Cluster, topology: str, count: int) -> None:
    """Wait until so many commands claim the lock: each does so once it handles signals."""
    journal = Journal(target, own(topology).owned)
    eventually(
        "commands claim the lock",
        lambda: sum(value.get("kind") == "lock" for value in journal.read().values()),
        lambda found: found >= count,
    )
