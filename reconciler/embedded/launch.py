"""Starts child processes that cannot outlive this one, even when it is killed with SIGKILL.

Called by `broker`. Linux ties a child's death signal to the *thread* that started it, so a broker started from a worker
thread would die when that worker ends. One daemon thread therefore starts all of them: it lives as long as the process.
"""

from __future__ import annotations

import queue
import signal
import subprocess
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

from reconciler.launcher import launched


class _Starter:
    """The thread that starts children, and the queue of what it is asked to start."""

    def __init__(self) -> None:
        self._orders: queue.SimpleQueue[tuple[Sequence[str], Path, Future[subprocess.Popen[bytes]]]]
        self._orders = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, command: Sequence[str], output: Path) -> subprocess.Popen[bytes]:
        with self._guard:
            # Dead in the child of a fork, which inherits this object but not its thread.
            if self._thread is None or not self._thread.is_alive():
                self._orders = queue.SimpleQueue()
                self._thread = threading.Thread(target=self._serve, name="embedded-starter", daemon=True)
                self._thread.start()
        answer: Future[subprocess.Popen[bytes]] = Future()
        self._orders.put((command, output, answer))
        return answer.result()

    def _serve(self) -> None:
        while True:
            command, output, answer = self._orders.get()
            try:
                answer.set_result(_spawn(command, output))
            except Exception as failure:
                answer.set_exception(failure)


_starter = _Starter()


def start_child(command: Sequence[str], output: Path) -> subprocess.Popen[bytes]:
    """Start a command whose output is appended to a file and that ends with this process.

    It gets a session of its own, so that Ctrl-C in the terminal reaches this process alone and the stop stays orderly.

    Raises:
        OSError: the command cannot be started.
    """
    return _starter.start(command, output)


def _spawn(command: Sequence[str], output: Path) -> subprocess.Popen[bytes]:
    with output.open("ab") as sink:
        return subprocess.Popen(
            launched(*command, number=signal.SIGKILL),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
