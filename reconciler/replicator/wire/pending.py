"""What a produce request leaves behind: something that may be awaited for its answers, or left alone.

`requests` hands it out; whoever sends ahead hears of the answers by callbacks and awaits nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from reconciler.replicator.wire import classic
from reconciler.replicator.wire.producing import Produced
from reconciler.replicator.wire.values import ConnectionLost, ProduceAnswer


class Answers:
    """The answers to a produce request.

    Args:
        pending: the library's future.
    """

    def __init__(self, pending: Any) -> None:
        self._pending = pending

    def __await__(self) -> Generator[Any, Any, list[ProduceAnswer]]:
        try:
            answer = yield from self._pending.__await__()
        except Exception as error:
            raise ConnectionLost(in_words(error)) from None
        return answers_of(answer)


def answers_of(answer: Any) -> list[ProduceAnswer]:
    """Return what stands in an answer, whoever decoded it."""
    return (answer if isinstance(answer, Produced) else classic.produced(answer)).answers


def in_words(error: BaseException) -> str:
    """Return what an error says; its name where it says nothing."""
    text = str(error)
    return text if text else type(error).__name__
