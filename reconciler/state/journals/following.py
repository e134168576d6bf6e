"""Keeps the newest values of a journal up to date, for its several readers."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.state.journals.encoding import Value
from reconciler.state.journals.follower import Follower
from reconciler.state.journals.journal import Journal


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
