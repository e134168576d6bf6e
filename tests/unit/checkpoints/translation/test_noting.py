"""Positions are handed to the producer one by one, whatever its queue holds."""

from __future__ import annotations

from typing import Any

from reconciler.checkpoints.translation.noting import send


class Full:
    """A producer whose queue is full until it was polled some times."""

    def __init__(self, polls: int) -> None:
        self._polls = polls
        self.sent: list[tuple[Any, ...]] = []

    def produce(self, topic: str, value: bytes | None, key: bytes, on_delivery: object) -> None:
        if self._polls:
            raise BufferError
        self.sent.append((topic, value, key, on_delivery))

    def poll(self, _seconds: float) -> int:
        self._polls -= 1
        return 0


def test_a_full_queue_is_waited_for_and_nothing_is_left_out() -> None:
    producer, heard = Full(3), print
    for number in range(5):
        send(producer, "offsets", b"%d" % number, None if number == 2 else b"x", heard)
    assert [key for _, _, key, _ in producer.sent] == [b"0", b"1", b"2", b"3", b"4"]
    assert producer.sent[2] == ("offsets", None, b"2", heard)
