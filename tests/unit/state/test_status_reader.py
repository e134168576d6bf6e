"""Reading the status topic again and again: all of it, or an error. The cluster is the mock that librdkafka has."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from reconciler.model.base.errors import Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.status import PartitionState, PartitionStatus, TaskStatus
from reconciler.state.confluent.faults import unreachable
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.follower import Follower
from reconciler.state.journals.topics import own
from reconciler.state.status import StatusReader

pytestmark = pytest.mark.slow

PATIENCE = 5.0
ONE = PartitionStatus("orders", 0, "east.orders", PartitionState.RUNNING, 5, 9)
WORD = TaskStatus("east-west", "east", "west", "run", 0, 1, 1.0, False, None, 0, 0, 0.0, 0.0, (ONE,))


class Mock:
    """A cluster of one broker in this process, until it is ended."""

    def __init__(self) -> None:
        self._admin: AdminClient | None = AdminClient(
            {"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0}
        )
        (broker,) = self._admin.list_topics(timeout=10).brokers.values()
        self.cluster = Cluster("west", (f"{broker.host}:{broker.port}",))
        self._producer = Producer({"bootstrap.servers": self.cluster.bootstrap[0], "log_level": 0})

    def write(self, key: bytes | str, value: bytes | str | None) -> None:
        self._producer.produce(own("tests").status.name, key=key, value=value, partition=0)
        self._producer.poll(0)

    def say(self, *words: TaskStatus) -> None:
        for word in words:
            self.write(f"{word.flow}/{word.task}/{word.run}", json.dumps(word.to_json()))
        assert self._producer.flush(10) == 0

    def end(self) -> None:
        self._admin = None
        gc.collect()


@pytest.fixture
def mock() -> Iterator[Mock]:
    made = Mock()
    yield made
    made.end()


@pytest.fixture
def reader(mock: Mock) -> Iterator[StatusReader]:
    made = StatusReader(mock.cluster, "tests")
    yield made
    made.close()


def test_whoever_looks_rarely_still_hears_the_newest_word(mock: Mock, reader: StatusReader) -> None:
    mock.say(WORD)
    assert reader.current(PATIENCE) == [WORD]
    for look in range(1, 4):
        words = [replace(WORD, time=float(1_000 * look + second)) for second in range(600)]
        mock.say(*words)
        assert reader.current(PATIENCE) == [words[-1]]


def test_a_topic_that_is_made_later_is_read(mock: Mock, reader: StatusReader) -> None:
    assert reader.current(PATIENCE) == []
    assert reader.current(PATIENCE) == []
    mock.say(WORD)
    deadline = time.monotonic() + 30
    while reader.current(PATIENCE) != [WORD]:
        assert time.monotonic() < deadline


def test_a_cluster_that_goes_away_is_named_to_those_who_ask_it(mock: Mock, reader: StatusReader) -> None:
    mock.say(WORD)
    assert reader.current(PATIENCE) == [WORD]
    mock.end()
    assert reader.current() == [WORD], "who does not ask hears nothing new"
    with pytest.raises(Unreachable) as caught:
        reader.current(0.5)
    assert caught.value.problems[0].code == "AB310"


def test_what_cannot_be_read_hides_nothing_else(mock: Mock, reader: StatusReader) -> None:
    shapes: list[object] = [5, [WORD.to_json()], {}, {"of": 7, "partitions": None}, {"flow": "x", "partitions": []}]
    shapes.append(WORD.to_json() | {"time": "noon"})
    shapes.append(WORD.to_json() | {"partitions": [ONE.to_json() | {"partition": "first"}]})
    foreign = [b"\xff\xfe", b"{", b"", *(json.dumps(shape).encode() for shape in shapes)]

    def scribble(when: str) -> None:
        mock.write(b"\xff", b"{}")
        for number, value in enumerate(foreign):
            mock.write(f"{when}/{number}/run", value)

    scribble("before")
    mock.say(WORD)
    assert reader.current(PATIENCE) == [WORD]
    scribble("behind")
    mock.say(replace(WORD, time=2.0))
    assert reader.current(PATIENCE) == [replace(WORD, time=2.0)]


def test_a_state_of_a_newer_release_is_not_taken_for_well(mock: Mock, reader: StatusReader) -> None:
    row = ONE.to_json() | {"state": "draining"}
    mock.write("east-west/0/run", json.dumps(WORD.to_json() | {"partitions": [row]}))
    mock.say(replace(WORD, task=1, tasks=2))
    assert [word.partitions[0].state for word in reader.current(PATIENCE)] == [
        PartitionState.OPENING,
        PartitionState.RUNNING,
    ]


def test_what_came_before_an_error_is_taken_in(
    mock: Mock, reader: StatusReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not read again: a status that was withdrawn would stay."""
    mock.say(WORD)
    assert reader.current(PATIENCE) == [WORD]
    arrived = Follower.arrived

    def broken(self: Follower, patience: float) -> Iterator[tuple[str, Value | None]]:
        yield from arrived(self, patience)
        raise unreachable(mock.cluster, "it went away")

    mock.write(f"{WORD.flow}/{WORD.task}/{WORD.run}", None)
    mock.say()
    with monkeypatch.context() as patched, pytest.raises(Unreachable):
        patched.setattr(Follower, "arrived", broken)
        reader.current(PATIENCE)
    assert reader.current(PATIENCE) == []
