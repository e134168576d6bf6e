"""Fetch sessions against a model of the broker's side: what it holds is always what was asked for."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from reconciler.replicator.wire import FetchAsk, FetchSession
from reconciler.replicator.wire.fetching import Fetched, Turn
from reconciler.replicator.wire.sessions import FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH

OTHER_ERROR = 29


def asking(partition: int, offset: int = 0) -> FetchAsk:
    return FetchAsk("orders", uuid.UUID(int=1), partition, offset, 0, 100)


def ok(session_id: int = 7) -> Fetched:
    return Fetched(0, 0, session_id, [])


class Broker:
    """The broker's side (KIP-227): a session's partitions, and the epoch that must come next."""

    def __init__(self) -> None:
        self.session_id = 0
        self.epoch = 0
        self.held: dict[int, FetchAsk] = {}

    def forget(self) -> None:
        self.session_id = 0

    def serve(self, turn: Turn, room: bool) -> Fetched:
        if turn.epoch == 0:
            self.held = {ask.partition: ask for ask in turn.asks}
            self.session_id = self.session_id + 1 if room else 0
            self.epoch = 1
            return Fetched(0, 0, self.session_id, [])
        if not self.session_id or turn.session_id != self.session_id:
            return Fetched(0, FETCH_SESSION_ID_NOT_FOUND, 0, [])
        if turn.epoch != self.epoch:
            return Fetched(0, INVALID_FETCH_SESSION_EPOCH, self.session_id, [])
        self.epoch += 1
        self.held.update({ask.partition: ask for ask in turn.asks})
        for ask in turn.forgotten:
            del self.held[ask.partition]
        return Fetched(0, 0, self.session_id, [])


events = st.sampled_from(["served", "answer lost", "request lost", "evicted", "no room"])
wishes = st.dictionaries(st.integers(0, 5), st.integers(0, 3), max_size=6)


@given(st.lists(st.tuples(wishes, events), max_size=20))
def test_the_broker_holds_what_was_asked_for(story: list[tuple[dict[int, int], str]]) -> None:
    session, broker = FetchSession(1, committed=True), Broker()
    for wish, event in story:
        asks = [asking(partition, offset) for partition, offset in wish.items()]
        if event == "evicted":
            broker.forget()
        for _ in range(2):
            turn = session.turn(asks)
            if event == "request lost":
                session.broken()
                break
            fetched = broker.serve(turn, room=event != "no room")
            if event == "answer lost":
                session.broken()
                break
            if session.answered(fetched):
                assert fetched.error == 0
                assert broker.held == {ask.partition: ask for ask in asks}
                break
        else:
            message = "a new session was refused"
            raise AssertionError(message)


def test_only_what_changed_is_said() -> None:
    session = FetchSession(1, committed=True)
    first = [asking(0), asking(1), asking(2)]
    assert session.turn(first) == Turn(0, 0, first)
    assert session.answered(ok())
    assert session.turn(first) == Turn(7, 1, [], [])
    assert session.answered(ok())
    moved = first[1]._replace(offset=9)
    assert session.turn([first[0], moved]) == Turn(7, 2, [moved], [first[2]])


def test_a_broker_without_room_gets_whole_requests() -> None:
    session = FetchSession(1, committed=True)
    for _ in range(3):
        assert session.turn([asking(0)]) == Turn(0, 0, [asking(0)])
        assert session.answered(ok(0))


def test_a_broken_session_is_ended_by_the_next_request() -> None:
    session = FetchSession(1, committed=True)
    session.turn([asking(0)])
    session.answered(ok())
    session.broken()
    assert session.turn([asking(0)]) == Turn(7, 0, [asking(0)])


def test_other_errors_are_the_callers() -> None:
    session = FetchSession(1, committed=True)
    session.turn([asking(0)])
    assert session.answered(Fetched(0, OTHER_ERROR, 0, []))
    assert session.turn([asking(0)]).epoch == 0


def test_names_are_known_of_all_that_was_asked_for() -> None:
    session = FetchSession(1, committed=True)
    session.turn([asking(0)])
    session.answered(ok())
    other = FetchAsk("payments", uuid.UUID(int=2), 0, 0, 0, 100)
    session.turn([asking(0), other])
    assert session.names == {uuid.UUID(int=1).bytes: "orders", uuid.UUID(int=2).bytes: "payments"}
