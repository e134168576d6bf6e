"""Incremental fetch sessions (KIP-227): a request names only what changed since the last one.

`requests` takes turns with a session, `reader` owns one for each broker. Pure.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from reconciler.wire.protocol.error_codes import ErrorCode
from reconciler.wire.protocol.fetching import Fetched, FetchTurn
from reconciler.wire.protocol.values import FetchAsk

# Errors of a whole request after which a new session must begin: the broker has no such session, or another state.
_OVER = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)

_LAST_EPOCH = 2**31 - 1

_Key = tuple[str, uuid.UUID | None, int]


def _key(ask: FetchAsk) -> _Key:
    return ask.topic, ask.topic_id, ask.partition


class FetchSession:
    """The partitions that one broker is to return, and those that it has been sent. One request at a time.

    Args:
        node: the broker.
        committed: whether it answers with committed records alone.

    Attributes:
        rack: as in `FetchBounds`; it may change between two requests.
        waited: seconds from the last request until its answer began to arrive; 0 if unknown.
        by_id: whether all its topics are known by their ids; a session cannot mix ids and names.
    """

    def __init__(self, node: int, committed: bool) -> None:
        self.node = node
        self.committed = committed
        self.rack = ""
        self.waited = 0.0
        self.by_id = True
        self._id = 0
        self._epoch = 0
        # Brokers without sessions fill their responses in this order: the partition that moved last comes last.
        self._wanted: dict[_Key, FetchAsk] = {}
        self._held: set[_Key] = set()
        self._changed: dict[_Key, FetchAsk] = {}
        self._forgotten: dict[_Key, FetchAsk] = {}
        self._names: dict[bytes, str] = {}

    def want(self, ask: FetchAsk) -> None:
        """Ask for a partition from now on, or for something else of it than before."""
        key = _key(ask)
        self._wanted.pop(key, None)
        self._wanted[key] = self._changed[key] = ask
        self._forgotten.pop(key, None)

    def forget(self, ask: FetchAsk) -> None:
        """Ask for a partition no more."""
        key = _key(ask)
        self._wanted.pop(key, None)
        self._changed.pop(key, None)
        if key in self._held:
            self._forgotten[key] = ask

    def turn(self) -> FetchTurn:
        """Return the next request, so that the response is about exactly the partitions of the session."""
        if self._epoch == 0:
            asks, forgotten = list(self._wanted.values()), list[FetchAsk]()
            self._names, self.by_id = {}, True
            self._held = set(self._wanted)
        else:
            asks, forgotten = list(self._changed.values()), list(self._forgotten.values())
            self._held.difference_update(self._forgotten)
            self._held.update(self._changed)
        self._changed, self._forgotten = {}, {}
        self._meet(asks)
        return FetchTurn(self._id, self._epoch, asks, forgotten)

    def turn_on(self) -> list[FetchAsk] | None:
        """Return the changed partitions, if these are the whole request; None otherwise.

        Then a session begins, a partition is dropped, or a new one has no id.
        """
        if self._epoch == 0 or not self._id or self._forgotten:
            return None
        if any(ask.topic_id is None for ask in self._changed.values()):
            return None
        return list(self.turn().asks)

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

    @property
    def number(self) -> int:
        """The broker's id of it; 0 while it keeps none."""
        return self._id

    @property
    def epoch(self) -> int:
        """Of the next request."""
        return self._epoch

    def stepped(self) -> None:
        """Take note of an answer in which all was well."""
        self._epoch = self._epoch + 1 if self._epoch < _LAST_EPOCH else 1

    def answered(self, fetched: Fetched) -> bool:
        """Take an answer's word on the session; False when the same must be asked again, of a new session."""
        if fetched.error in _OVER:
            self._id = self._epoch = 0
            return False
        if fetched.error:
            self.broken()
        elif fetched.session_id:
            self._id = fetched.session_id
            self.stepped()
        else:
            # The broker keeps no session for us: its cache is full.
            self._id = self._epoch = 0
        return True

    def broken(self) -> None:
        """Begin anew with the next request, which also ends the old session: the broker's state is unknown."""
        self._epoch = 0
