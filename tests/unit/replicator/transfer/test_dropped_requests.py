"""A broker that closes the connection on large requests: noticed, gone around, and said once with what helps."""

from __future__ import annotations

import random
import ssl

import kafka.errors as kafka_errors
import pytest

from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.status import PartitionState
from reconciler.replicator.partition.place import LogEnd
from reconciler.replicator.transfer.dropped_requests import DroppedRequests
from reconciler.wire import Closed, ConnectionLost, FetchAnswer
from reconciler.wire.net.connection import _ClosedError
from reconciler.wire.net.pending import connection_lost
from tests.support.records.batches import Content, build
from tests.support.replicator.channels import SIDES
from tests.unit.replicator.transfer.test_sender import Scene

KB = 1024


class Narrow:
    """A target that closes the connection on a request with more bytes of batches than so many.

    Args:
        scene: a writer and its wire.
        most: bytes.
        sizes: of the batches of each partition: how many records, and how large each is.
    """

    def __init__(self, scene: Scene, most: int, sizes: list[list[tuple[int, int]]]) -> None:
        self.scene, self.most = scene, most
        self.closings = 0
        # Batches of what is hardly compressed and never merged.
        self.logs = [self._log(number, of_one) for number, of_one in enumerate(sizes)]
        self.ends = [sum(count for count, _ in of_one) for of_one in sizes]
        self.channels = [scene.channel(number, batches=0) for number in range(len(sizes))]

    @staticmethod
    def _log(number: int, sizes: list[tuple[int, int]]) -> bytes:
        found, base, some = [], 0, random.Random(number)
        for count, size in sizes:
            found.append(build([Content(1_000, None, some.randbytes(size)) for _ in range(count)], base))
            base += count
        return b"".join(found)

    def run(self, turns: int = 3_000) -> None:
        """Have everything copied that can be; what was lost is opened anew."""
        wire = self.scene.wire
        for _ in range(turns):
            for number, channel in enumerate(self.channels):
                if channel.state is PartitionState.OPENING:
                    position = max(0, channel.position)
                    channel.open(SIDES, LogEnd(position, 7, 0, position))
                if channel.state is PartitionState.RUNNING and channel.wants_data():
                    answer = FetchAnswer("orders", number, 0, -1, -1, 0, self.logs[number])
                    if channel.fetch_at < self.ends[number]:
                        channel.receive(answer, channel.fetch_at, channel.opening, 0.0)
            self.scene.now += 1.0
            self.scene.writer.offer([one for one in self.channels if one.queue.items])
            if not wire._waiting:
                if any(one.state is PartitionState.OPENING for one in self.channels):
                    continue
                return
            asks = wire._waiting[0][0]
            if sum(len(ask.head) + len(ask.batch) for ask in asks) > self.most:
                self.closings += 1
                while wire._waiting:
                    wire._waiting.pop(0)[1](Closed("closed by the broker"))
            else:
                wire.answer({ask.partition: self.channels[ask.partition].in_flight[0].landing for ask in asks})
            self.scene.writer.raise_failure()
        raise AssertionError([str(one.status()) for one in self.channels])

    @property
    def positions(self) -> list[int]:
        return [one.position for one in self.channels]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


@pytest.mark.parametrize("most", [100 * KB, 300 * KB, 1_000 * KB])
def test_requests_become_smaller_until_they_pass_and_stay_so(scene: Scene, most: int) -> None:
    """Batches that pass alone, and more of them than one request takes."""
    target = Narrow(scene, most, [[(10, 9 * KB)] * 20] * 20)
    target.run()
    assert target.positions == target.ends
    assert target.closings <= 10
    (said,) = [str(one.reason) for one in target.channels if one.reason]
    assert "node 2: closes the connection on a request with" in said
    assert "declare `clients: {producer: {max.request.size: " in said
    assert said.endswith("or raise socket.request.max.bytes of its brokers [AB239]")


@pytest.mark.parametrize("most", [60 * KB, 150 * KB])
def test_batches_that_no_request_could_carry_are_divided(scene: Scene, most: int) -> None:
    target = Narrow(scene, most, [[(40, 10 * KB)] * 3, [(3, KB)] * 3])
    target.run()
    assert target.positions == target.ends
    assert target.closings <= 14


def test_a_record_that_no_request_could_carry_parks_and_no_other(scene: Scene) -> None:
    target = Narrow(scene, 50 * KB, [[(2, KB), (1, 80 * KB)], [(5, KB)] * 9])
    target.run()
    assert target.positions == [2, 45]
    parked = target.channels[0]
    assert parked.state is PartitionState.PARKED
    assert "closes the connection on a request with 8" in str(parked.reason)
    assert "[AB239]" in str(parked.reason)


def test_where_all_pass_nothing_is_said(scene: Scene) -> None:
    target = Narrow(scene, 10**9, [[(10, 9 * KB)] * 20] * 20)
    target.run()
    assert (target.positions, target.closings) == (target.ends, 0)
    assert not any(one.reason for one in target.channels)


def closed(known: DroppedRequests, *sizes: int) -> list[bool]:
    """Have requests of so many bytes lost together, as the connection is closed."""
    for size in sizes:
        known.sent(size)
    return [known.lost(size, is_closed=True, now=0.0) for size in sizes]


def test_one_closing_tells_nothing_nor_do_those_of_a_broker_that_was_away() -> None:
    known = DroppedRequests()
    for _ in range(5):
        assert closed(known, 1_000) == [False]
        known.sent(500)
        assert not known.lost(500, is_closed=False, now=0.0)
    assert not known.is_known
    assert known.bound is None


def test_of_all_that_is_lost_by_one_closing_the_largest_counts_and_once() -> None:
    known = DroppedRequests()
    known.sent(100)
    known.answered(100)
    assert closed(known, 100, 900, 800, 150) == [False] * 4
    assert (known.is_known, known.refused) == (False, 900)
    assert closed(known, 150, 400, 90) == [False, True, False]
    assert (known.bound, known.refused, known.most(59.0), known.most(61.0)) == (250, 400, 400, None)
    assert closed(known, 90, 100) == [False, False]
    known.answered(250)
    assert known.bound == 250
    # The limit was raised, and somebody's batch was larger than what is tried.
    known.answered(900)
    assert not known.is_known


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (kafka_errors.KafkaConnectionError(_ClosedError("closed by the broker")), Closed, "closed by the broker"),
        (
            kafka_errors.KafkaConnectionError(ConnectionResetError(104, "Connection reset by peer")),
            Closed,
            "Connection",
        ),
        (kafka_errors.KafkaConnectionError(ssl.SSLEOFError(8, "EOF occurred")), Closed, "EOF occurred"),
        (kafka_errors.KafkaConnectionError("unable to connect: no"), ConnectionLost, "unable to connect: no"),
        (kafka_errors.RequestTimedOutError("no answer for 30 s"), ConnectionLost, "no answer for 30 s"),
        (kafka_errors.RequestTimedOutError(), ConnectionLost, "REQUEST_TIMED_OUT"),
        (kafka_errors.NodeNotReadyError(3), ConnectionLost, "node not ready"),
        (kafka_errors.Cancelled(), ConnectionLost, "cancelled"),
        (OSError(113, "No route to host"), ConnectionLost, "No route to host"),
        (TimeoutError(), ConnectionLost, "timeout"),
    ],
)
def test_errors_of_libraries_are_said_in_words(error: Exception, kind: type[ConnectionLost], words: str) -> None:
    found = connection_lost(Cluster("west", ("west:1",)), error)
    assert type(found) is kind
    assert str(found).startswith(words)
    assert not any(sign in str(found) for sign in ("Errno", "Error", "('", "[", "b'"))


def test_what_is_refused_at_login_is_said_in_words() -> None:
    found = connection_lost(Cluster("west", ("west:1",)), kafka_errors.SaslAuthenticationFailedError("Bad password"))
    assert "does not let an anonymous user in: Bad password; check security" in str(found)
