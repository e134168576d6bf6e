"""Fetch sessions against a model of the broker's side: what it holds is always what was asked for."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from reconciler.wire import ErrorCode, FetchAsk, FetchSession
from reconciler.wire.protocol.fetching import Fetched, FetchTurn

OTHER_ERROR = 29


def asking(partition: int, offset: int = 0) -> FetchAsk:
    return FetchAsk("orders", uuid.UUID(int=1), partition, offset, 0, 100)


def ok(session_id: int = 7) -> Fetched:
    return Fetched(0, 0, session_id, [])


class Caller:
    """Who asks: it says what changes, and the session is to make a whole of it."""

    def __init__(self) -> None:
        self.session = FetchSession(1, committed=True)
        self._asks: dict[int, FetchAsk] = {}

    def wish(self, *asks: FetchAsk) -> None:
        wanted = {ask.partition: ask for ask in asks}
        for partition, ask in self._asks.items():
            if partition not in wanted:
                self.session.forget(ask)
        for partition, ask in wanted.items():
            if self._asks.get(partition) != ask:
                self.session.want(ask)
        self._asks = wanted

    def turn(self, *asks: FetchAsk) -> FetchTurn:
        self.wish(*asks)
        return self.session.turn()


class Broker:
    """The broker's side (KIP-227): a session's partitions, and the epoch that must come next."""

    def __init__(self) -> None:
        self.session_id = 0
        self.epoch = 0
        self.held: dict[int, FetchAsk] = {}

    def forget(self) -> None:
        self.session_id = 0

    def serve(self, turn: FetchTurn, room: bool) -> Fetched:
        if turn.epoch == 0:
            self.held = {ask.partition: ask for ask in turn.asks}
            self.session_id = self.session_id + 1 if room else 0
            self.epoch = 1
            return Fetched(0, 0, self.session_id, [])
        if not self.session_id or turn.session_id != self.session_id:
            return Fetched(0, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0, [])
        if turn.epoch != self.epoch:
            return Fetched(0, ErrorCode.INVALID_FETCH_SESSION_EPOCH, self.session_id, [])
        self.epoch += 1
        self.held.update({ask.partition: ask for ask in turn.asks})
        for ask in turn.forgotten:
            del self.held[ask.partition]
        return Fetched(0, 0, self.session_id, [])


events = st.sampled_from(["served", "answer lost", "request lost", "evicted", "no room"])
wishes = st.dictionaries(st.integers(0, 5), st.integers(0, 3), max_size=6)


@given(st.lists(st.tuples(st.lists(wishes, min_size=1, max_size=3), events), max_size=20))
def test_the_broker_holds_what_was_asked_for(story: list[tuple[list[dict[int, int]], str]]) -> None:
    caller, broker = Caller(), Broker()
    session = caller.session
    for changes, event in story:
        for wish in changes:
            asks = [asking(partition, offset) for partition, offset in wish.items()]
            caller.wish(*asks)
        if event == "evicted":
            broker.forget()
        for _ in range(2):
            turn = session.turn()
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
    caller = Caller()
    first = [asking(0), asking(1), asking(2)]
    assert caller.turn(*first) == FetchTurn(0, 0, first, [])
    assert caller.session.answered(ok())
    assert caller.turn(*first) == FetchTurn(7, 1, [], [])
    assert caller.session.answered(ok())
    moved = first[1]._replace(offset=9)
    assert caller.turn(first[0], moved) == FetchTurn(7, 2, [moved], [first[2]])


def test_a_broker_without_room_gets_whole_requests_with_those_that_moved_last() -> None:
    caller = Caller()
    one, other = asking(0), asking(1)
    for offset in range(3):
        one = one._replace(offset=offset)
        assert caller.turn(one, other).asks[-1] == (one if offset else other)
        assert caller.session.answered(ok(0))
    assert caller.turn(one, other) == FetchTurn(0, 0, [other, one], [])


def test_a_broken_session_is_ended_by_the_next_request() -> None:
    caller = Caller()
    caller.turn(asking(0))
    caller.session.answered(ok())
    caller.session.broken()
    assert caller.turn(asking(0)) == FetchTurn(7, 0, [asking(0)], [])


def test_other_errors_are_the_callers() -> None:
    caller = Caller()
    caller.turn(asking(0))
    assert caller.session.answered(Fetched(0, OTHER_ERROR, 0, []))
    assert caller.turn(asking(0)).epoch == 0


def test_names_are_known_of_all_that_was_asked_for() -> None:
    caller = Caller()
    caller.turn(asking(0))
    caller.session.answered(ok())
    other = FetchAsk("payments", uuid.UUID(int=2), 0, 0, 0, 100)
    caller.session.want(other)
    caller.session.turn()
    assert caller.session.names == {uuid.UUID(int=1).bytes: "orders", uuid.UUID(int=2).bytes: "payments"}


def test_going_on_says_only_what_changed() -> None:
    caller = Caller()
    first = [asking(0), asking(1)]
    caller.turn(*first)
    assert caller.session.answered(ok())
    caller.wish(*first)
    assert caller.session.turn_on() == []
    caller.session.stepped()
    moved, another = first[1]._replace(offset=9), asking(2)
    caller.wish(first[0], moved, another)
    assert (caller.session.number, caller.session.epoch) == (7, 2)
    assert caller.session.turn_on() == [moved, another]
    assert caller.session.turn_on() == []
    caller.session.stepped()
    # Whoever asks the usual way after that goes on from there.
    assert caller.turn(first[0], moved, another) == FetchTurn(7, 3, [], [])


def test_nobody_goes_on_while_a_session_begins() -> None:
    caller = Caller()
    caller.wish(asking(0))
    assert caller.session.turn_on() is None
    assert caller.session.turn() == FetchTurn(0, 0, [asking(0)], [])
    assert caller.session.answered(ok(0))
    assert caller.session.turn_on() is None, "the broker keeps none"
    caller.session.turn()
    assert caller.session.answered(ok())
    caller.session.broken()
    assert caller.session.turn_on() is None
    assert caller.session.turn() == FetchTurn(7, 0, [asking(0)], [])


def test_nobody_goes_on_while_something_is_to_be_forgotten() -> None:
    caller = Caller()
    caller.turn(asking(0), asking(1))
    assert caller.session.answered(ok())
    moved = asking(0, 5)
    caller.wish(moved)
    assert caller.session.turn_on() is None
    assert caller.session.turn() == FetchTurn(7, 1, [moved], [asking(1)]), "and nothing of it is lost"
    assert caller.session.answered(ok())
    assert caller.session.turn_on() == []


def test_who_is_wanted_again_is_not_forgotten() -> None:
    caller = Caller()
    caller.turn(asking(0), asking(1))
    assert caller.session.answered(ok())
    caller.wish(asking(0))
    caller.wish(asking(0), asking(1))
    assert caller.session.turn_on() == [asking(1)]


def test_names_are_known_of_all_that_it_goes_on_with() -> None:
    caller = Caller()
    caller.turn(asking(0))
    assert caller.session.answered(ok())
    caller.session.want(FetchAsk("payments", uuid.UUID(int=2), 0, 0, 0, 100))
    caller.session.turn_on()
    assert caller.session.names == {uuid.UUID(int=1).bytes: "orders", uuid.UUID(int=2).bytes: "payments"}
    assert caller.session.by_id
    caller.session.want(FetchAsk("old", None, 0, 0, 0, 100))
    assert caller.session.turn_on() is None
    caller.session.turn()
    assert not caller.session.by_id
