"""Records whose headers the client library cannot give: compared without them, and never kept in part."""

from __future__ import annotations

from typing import Any, cast

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Message

from reconciler.failover.logs import log_match
from reconciler.failover.topics import diverged
from reconciler.failover.topics.record_store import kept_headers
from reconciler.model.base.errors import EnvironmentFault


class Record:
    """A record with the headers of a real one, or as the library fails with those that are not UTF-8."""

    def __init__(self, headers: list[tuple[str, bytes | None]] | None, value: bytes = b"v") -> None:
        self._headers = headers
        self._value = value

    def __getattr__(self, name: str) -> Any:
        answers = {"topic": "orders", "partition": 3, "offset": 7, "key": b"k", "value": self._value}
        return lambda: answers[name]

    def timestamp(self) -> tuple[int, int]:
        return TIMESTAMP_CREATE_TIME, 1_000

    def headers(self) -> list[tuple[str, bytes | None]]:
        if self._headers is None:
            message = "returned a result with an exception set"
            raise SystemError(message)
        return self._headers


def record(headers: list[tuple[str, bytes | None]] | None, value: bytes = b"v") -> Message:
    return cast("Message", Record(headers, value))


def test_headers_are_kept_in_their_order() -> None:
    pairs = [("a", b"1"), ("b", None), ("a", b"")]
    assert kept_headers(record(pairs)) == pairs
    assert '"headers":[["a","MQ=="],["b",null],["a",""]]' in diverged._line(record(pairs))


def test_a_record_that_cannot_be_kept_as_it_is_is_not_kept() -> None:
    for keep in (kept_headers, diverged._line):
        with pytest.raises(EnvironmentFault) as raised:
            keep(record(None))
        (problem,) = raised.value.problems
        assert (problem.code, problem.where) == ("AB717", "topic orders, partition 3, offset 7")


def test_it_is_compared_by_what_the_library_gives() -> None:
    assert log_match._mark(record(None)) == log_match._mark(record(None))
    assert log_match._mark(record(None)) != log_match._mark(record(None, b"other"))
    assert log_match._mark(record([("a", b"1")])) != log_match._mark(record([("a", b"2")]))
