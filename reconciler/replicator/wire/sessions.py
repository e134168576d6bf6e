"""Incremental fetch sessions (KIP-227): a request names only what changed since the last one.

`requests` takes turns with a session, `reader` owns one for each broker. Pure.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from reconciler.replicator.wire.fetching import Fetched, Turn
from reconciler.replicator.wire.values import FetchAsk

# Errors of a whole request that say that the session is not there, or not as we thought: begin a new one.
FETCH_SESSION_ID_NOT_FOUND = 70
INVALID_FETCH_SESSION_EPOCH = 71
FETCH_SESSION_TOPIC_ID_ERROR = 106
_OVER = frozenset((FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR))

_LAST_EPOCH = 2**31 - 1

_Key = tuple[str, uuid.UUID | None, int]


class FetchSession:
    """What one broker knows of what we want from it. One request at a time.

    Args:
        node: the broker.
        committed: whether it answers with committed records alone.

    Attributes:
        by_id: whether all its topics are known by their ids; a session cannot mix ids and names.
    """

    def __init__(self, node: int, committed: bool) -> None:
        self.node = node
        self.committed = committed
        self.by_id = True
        self._id = 0
        self._epoch = 0
        self._known: dict[_Key, FetchAsk] = {}
        self._names: dict[bytes, str] = {}

    def turn(self, asks: Sequence[FetchAsk]) -> Turn:
        """Return what to say for the answer to be about exactly `asks`."""
        wanted = {(ask.topic, ask.topic_id, ask.partition): ask for ask in asks}
        known, self._known = self._known, wanted
        if self._epoch == 0:
            self._names = {}
            self.by_id = True
            self._meet(asks)
            return Turn(self._id, 0, asks)
        changed = [ask for key, ask in wanted.items() if known.get(key) != ask]
        self._meet(changed)
        forgotten = [ask for key, ask in known.items() if key not in wanted]
        return Turn(self._id, self._epoch, changed, forgotten)

    def _meet(self, asks: Sequence[FetchAsk]) -> None:
        for ask in asks:
            if ask.topic_id is None:
                self.by_id = False
            else:
                self._names[ask.topic_id.bytes] = ask.topic

    @property
    def names(self) -> dict[bytes, str]:
        """The topics that an answer may be about, by their ids."""
        return self._names

    def answered(self, fetched: Fetched) -> bool:
        """Take an answer's word on the session; False when the same must be asked again, of a new session."""
        if fetched.error in _OVER:
            self._id = self._epoch = 0
            return False
        if fetched.error:
            self.broken()
        elif fetched.session_id:
            self._id = fetched.session_id
            self._epoch = self._epoch + 1 if self._epoch < _LAST_EPOCH else 1
        else:
            # The broker keeps no session for us: its cache is full.
            self._id = self._epoch = 0
        return True

    def broken(self) -> None:
        """Begin anew with the next request, which also ends the old session: nobody knows what the broker has seen."""
        self._epoch = 0
