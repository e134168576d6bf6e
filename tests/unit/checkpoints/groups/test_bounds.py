"""Where partitions begin and end: what one that cannot be asked means for the others."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition

from reconciler.checkpoints.groups.bounds import ClusterLookup
from reconciler.model.base.errors import EnvironmentFault, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.committed import Log, LogBounds
from reconciler.state.confluent import clients

EARLIEST, LATEST = -2, -1


class FakeAdmin:
    """Answers what it is told: by partition the first offset, the last stable one and the end; or an error."""

    def __init__(self, logs: Mapping[Log, tuple[int, int, int] | int]) -> None:
        self.logs = logs

    def list_offsets(
        self, asked: Mapping[TopicPartition, Any], isolation_level: IsolationLevel, request_timeout: float
    ) -> dict[TopicPartition, Future[Any]]:
        assert request_timeout > 0
        return {place: self._answer(place, spec._value, isolation_level) for place, spec in asked.items()}

    def _answer(self, place: TopicPartition, which: int, level: IsolationLevel) -> Future[Any]:
        answer: Future[Any] = Future()
        told = self.logs[place.topic, place.partition]
        if isinstance(told, int):
            answer.set_exception(KafkaException(KafkaError(told)))
        elif which == EARLIEST:
            answer.set_result(SimpleNamespace(offset=told[0]))
        elif which == LATEST:
            answer.set_result(SimpleNamespace(offset=told[1 if level is IsolationLevel.READ_COMMITTED else 2]))
        else:
            answer.set_result(SimpleNamespace(offset=-1 if which > told[2] else which))
        return answer

    def poll(self, _seconds: float) -> None:
        """Nothing to tell."""


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[Log, tuple[int, int, int] | int]:
    """What the cluster tells, to be filled."""
    logs: dict[Log, tuple[int, int, int] | int] = {}
    monkeypatch.setattr(clients, "make", lambda *_arguments: FakeAdmin(logs))
    return logs


def asker() -> ClusterLookup:
    return ClusterLookup(Cluster("east", ("127.0.0.1:1",)), 5.0)


def test_partitions_that_are_not_there_or_have_no_leader_are_left_out(
    told: dict[Log, tuple[int, int, int] | int],
) -> None:
    told |= {
        ("orders", 0): (5, 90, 100),
        ("orders", 1): KafkaError.LEADER_NOT_AVAILABLE,
        ("gone", 0): KafkaError.UNKNOWN_TOPIC_OR_PART,
        # Its beginning was deleted between two questions.
        ("short", 0): (8, 7, 9),
    }
    assert asker().bounds(told.keys()) == {("orders", 0): LogBounds(5, 90, 100), ("short", 0): LogBounds(8, 8, 9)}
    assert asker().bounds([]) == {}
    asked = [("orders", 0), ("orders", 1), ("short", 0), ("gone", 0)]
    assert asker().at_time(asked, 50) == {("orders", 0): 50, ("short", 0): None}
    assert asker().at_time([], 50) == {}


@pytest.mark.parametrize("error", [KafkaError.LEADER_NOT_AVAILABLE, KafkaError._NOENT])
def test_where_nobody_has_a_leader_there_are_no_bounds(told: dict[Log, tuple[int, int, int] | int], error: int) -> None:
    """Of a topic that was just made all partitions may have none; the client has an error of its own for that."""
    told |= {("orders", 0): error}
    assert asker().bounds(told.keys()) == {}


def test_all_topics_that_may_not_be_described_are_named_at_once(
    told: dict[Log, tuple[int, int, int] | int],
) -> None:
    told |= {
        ("b", 0): KafkaError.TOPIC_AUTHORIZATION_FAILED,
        ("a", 0): KafkaError.TOPIC_AUTHORIZATION_FAILED,
        ("a", 1): KafkaError.TOPIC_AUTHORIZATION_FAILED,
        ("c", 0): (0, 1, 1),
    }
    with pytest.raises(EnvironmentFault) as caught:
        asker().bounds(told.keys())
    assert [(one.code, one.message.rpartition(" ")[2]) for one in caught.value.problems] == [
        ("AB313", "a"),
        ("AB313", "b"),
    ]
    told |= {("c", 0): KafkaError._TIMED_OUT}
    with pytest.raises(Unreachable, match="AB310"):
        asker().bounds([("c", 0)])


def test_a_reader_of_all_records_ends_at_the_end() -> None:
    bounds = LogBounds(5, 90, 100)
    assert bounds.read(committed=True) == bounds
    assert bounds.read(committed=False) == LogBounds(5, 100, 100)
