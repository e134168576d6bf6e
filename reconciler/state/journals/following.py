"""Keeps the newest values of a journal up to date, for its several readers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent.faults import unreachable
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.follower import Follower
from reconciler.state.journals.journal import Journal

_PAUSE = 0.05


def begin(journal: Journal) -> tuple[Follower, dict[str, Value]]:
    """Return a follower that has caught up, and the newest value of every key; nothing stays open where it fails.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB311, reading is refused.
    """
    follower = journal.follow()
    try:
        return follower, follower.catch_up()
    except BaseException:
        follower.close()
        raise


def take_in(values: dict[str, Value], arrived: Iterable[tuple[str, Value | None]]) -> None:
    """Change values by what was written later: the newest of a key counts, and None deletes it."""
    for key, value in arrived:
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value


class FollowedValues:
    """The newest values of a journal, among them all that its reader has written itself.

    Args:
        cluster: that holds the journal.
        journal: which one.
        timeout: seconds to wait for what was written.

    Attributes:
        written: the offset behind what the reader has written last, which it sets.
    """

    def __init__(self, cluster: Cluster, journal: Journal, timeout: float) -> None:
        self.written = 0
        self._cluster = cluster
        self._journal = journal
        self._timeout = timeout
        self._follower: Follower | None = None
        self._values: dict[str, Value] = {}

    def current(self) -> Mapping[str, Value]:
        """Return them by key; only the first call waits for the cluster, later ones take in what has arrived.

        It waits until everything up to `written` was read.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        if self._follower is None:
            self._follower, self._values = begin(self._journal)
        deadline = time.monotonic() + self._timeout
        while (arrived := list(self._follower.poll(self._patience))) or self._patience:
            if not arrived and time.monotonic() > deadline:
                raise unreachable(self._cluster, f"{self._journal.where} does not show what was written to it")
            take_in(self._values, arrived)
        return self._values

    @property
    def _patience(self) -> float:
        """Seconds to wait for more to arrive: 0 where everything up to `written` was read."""
        assert self._follower is not None, "it was made before"
        return _PAUSE if self._follower.next_offset < self.written else 0.0

    def close(self) -> None:
        """Close the connection."""
        if self._follower is not None:
            self._follower.close()
