"""Pauses by scope: the narrowest rule counts, the newest command is obeyed as a whole, and no rule is left over."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.recorded.pauses import Pauses, PauseScope

FLOW, ORDERS, FIRST = PauseScope("east-west"), PauseScope("east-west", "orders"), PauseScope("east-west", "orders", 0)
USERS = PauseScope("east-west", "users")
PLACES = [("orders", 0), ("orders", 1), ("users", 0)]


def after(*commands: tuple[PauseScope, bool]) -> Pauses:
    pauses = Pauses()
    for scope, paused in commands:
        pauses = pauses.changed(pauses.changes(scope, paused))
    return pauses


def held(pauses: Pauses) -> list[str]:
    return [f"{topic}/{n}" for topic, n in PLACES if pauses.hold("east-west", topic, n)]


@pytest.mark.parametrize(
    ("commands", "paused"),
    [
        ([], []),
        ([(FLOW, True)], ["orders/0", "orders/1", "users/0"]),
        ([(ORDERS, True)], ["orders/0", "orders/1"]),
        ([(FIRST, True)], ["orders/0"]),
        ([(FLOW, True), (ORDERS, False)], ["users/0"]),
        ([(ORDERS, True), (FIRST, False)], ["orders/1"]),
        ([(FLOW, True), (ORDERS, False), (FIRST, True)], ["orders/0", "users/0"]),
        ([(FIRST, True), (FLOW, True), (FLOW, False)], []),
        ([(FLOW, True), (ORDERS, False), (FLOW, True)], ["orders/0", "orders/1", "users/0"]),
    ],
)
def test_the_narrowest_rule_counts(commands: list[tuple[PauseScope, bool]], paused: list[str]) -> None:
    assert held(after(*commands)) == paused


def test_other_flows_are_not_concerned() -> None:
    assert not after((FLOW, True)).hold("west-east", "orders", 0)


def test_whoever_resumes_everything_leaves_no_rule() -> None:
    assert after((FIRST, True), (ORDERS, False), (USERS, True), (FLOW, False)).rules == {}
    assert after((ORDERS, True), (ORDERS, False)).rules == {}


def test_what_says_nothing_new_is_not_written() -> None:
    assert Pauses().changes(FLOW, paused=False) == {}
    assert after((FLOW, True)).changes(ORDERS, paused=True) == {}


SCOPES = st.sampled_from([FLOW, ORDERS, FIRST, USERS, PauseScope("east-west", "orders", 1)])


@settings(deadline=None)
@given(st.lists(st.tuples(SCOPES, st.booleans()), min_size=1))
def test_the_newest_command_holds_for_all_that_it_covers(commands: list[tuple[PauseScope, bool]]) -> None:
    scope, paused = commands[-1]
    before, now = after(*commands[:-1]), after(*commands)
    for topic, partition in PLACES:
        covered = scope.covers(topic, partition)
        expected = paused if covered else before.hold("east-west", topic, partition)
        assert now.hold("east-west", topic, partition) is expected


@pytest.mark.parametrize(("scope", "text"), [(FLOW, "flow east-west"), (ORDERS, "orders"), (FIRST, "orders/0")])
def test_a_scope_reads_as_people_write_it(scope: PauseScope, text: str) -> None:
    assert str(scope) == text
