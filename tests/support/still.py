"""Makes a process stand still, as one does on a machine that swaps or is paused."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from tests.support.waiting import eventually


def halt(pid: int | None) -> None:
    """Stop a process where it is; return when all of its threads stand still. SIGCONT lets it go on.

    The signal has only been sent when `kill` returns: on a busy machine threads go on for 30 ms, in which a replica
    fetches what is just being written.
    """
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    eventually(f"process {pid} stands still", lambda: _states(pid), lambda found: found == {"T"})


def _states(pid: int) -> set[str]:
    """Return the states of a process's threads, by their letters in proc(5)."""
    found = set()
    for thread in Path(f"/proc/{pid}/task").iterdir():
        # It may end before it would be stopped.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # The name before it, in parentheses, may hold anything.
            found.add((thread / "stat").read_text().rpartition(")")[2].split()[0])
    return found
