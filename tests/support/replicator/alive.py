"""Who lives, to those that listen: a word said again and again, as tasks and their processes do."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from reconciler.model.tasks.status import TaskStatus
from reconciler.state.status import StatusWriter

_EVERY = 0.3


@contextmanager
def alive(writer: StatusWriter, word: TaskStatus, ahead: float = 0.0) -> Iterator[None]:
    """Say a word over and over until the end; it is said when the block begins.

    Args:
        writer: posts it.
        word: what is said, each time as of then.
        ahead: seconds by which the speaker's clock is ahead of ours; negative where it is behind.
    """
    over = threading.Event()

    def said() -> TaskStatus:
        return replace(word, time=time.time() + ahead)

    def speak() -> None:
        while not over.wait(_EVERY):
            writer.post(said())

    writer.post_last(said())
    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield
    finally:
        over.set()
        speaker.join()
