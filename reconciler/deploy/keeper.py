"""A program of its own: keeps one command running, and records how it fares.

Run as `python -I -S keeper.py <launcher.py> <run file> <log file> <seconds> <command>...`. It imports the standard
library alone, since every deployed process has one. It holds a lock on `<run file>.lock` while it lives, so that
a record without a living keeper is recognised; SIGTERM ends the command and then the keeper. A keeper that is killed
takes its command along, by the launcher.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import FrameType

LARGEST_LOG = 64 * 2**20
SHORTEST_BREAK, LONGEST_BREAK = 1.0, 30.0
# A command that ran for so long is started again at once.
STEADY = 60.0
_TICK = 0.2
_LOG_EVERY = 5.0
_PRIVATE = 0o600


class Keeper:
    """Keeps a command running.

    Args:
        launcher: path of the program that ties a command to this process.
        record: the file with how it fares.
        log: the file that gets what it prints.
        patience: seconds from its SIGTERM to its SIGKILL.
        command: the command.
    """

    def __init__(self, launcher: str, record: Path, log: Path, patience: float, command: list[str]) -> None:
        self._launcher = launcher
        self._record = record
        self._log = log
        self._patience = patience
        self._command = command
        self._child: subprocess.Popen[bytes] | None = None
        self._since = 0.0
        self._restarts = 0
        self._why = ""
        self._break = 0.0
        self._due = 0.0
        self._log_due = 0.0
        self._environ: Mapping[str, str] | None = None
        self._also: Mapping[str, str] = {}
        self.is_ending = False

    def end_on_signals(self) -> None:
        """Have SIGTERM and SIGINT end it."""

        def end(_number: int, _frame: FrameType | None) -> None:
            self.is_ending = True

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)

    def run(self) -> None:
        """Keep it running until `is_ending`."""
        while not self.is_ending:
            if self._child is None and time.monotonic() >= self._due:
                self._start()
            elif self._child is not None and self._child.poll() is not None:
                self._ended(self._child.returncode)
            self._trim()
            self._look()
            time.sleep(_TICK)
        self._end()
        self._finish()

    def _look(self) -> None:
        """Look whether it is to end for another reason than a signal; called again and again."""

    def _finish(self) -> None:
        """Take note that the command has ended for good."""
        self._record.unlink(missing_ok=True)

    def _start(self) -> None:
        launched = [sys.executable, "-I", "-S", self._launcher, str(int(signal.SIGTERM)), str(os.getpid())]
        descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _PRIVATE)
        try:
            self._child = subprocess.Popen(
                [*launched, *self._command],
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=self._environ,
            )
        except OSError as error:
            self._ended(None, f"cannot be started: {error.strerror}")
        finally:
            os.close(descriptor)
        self._since = time.time()
        self._tell()

    def _ended(self, code: int | None, why: str = "") -> None:
        """Plan the next start: the sooner, the longer it ran."""
        self._child = None
        ran = time.time() - self._since
        self._why = why or (f"ended by {signal.Signals(-code).name}" if code and code < 0 else f"ended with {code}")
        self._break = 0.0 if ran >= STEADY else min(LONGEST_BREAK, max(SHORTEST_BREAK, 2 * self._break))
        self._due = time.monotonic() + self._break
        self._restarts += 1
        self._tell()

    def _end(self) -> None:
        """End the command: SIGTERM, and SIGKILL for its whole session after some time."""
        child, self._child = self._child, None
        if child is None:
            return
        child.terminate()
        try:
            child.wait(self._patience)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()

    def _tell(self) -> None:
        told = {
            "keeper": os.getpid(),
            "pid": self._child.pid if self._child is not None else 0,
            "since": self._since,
            "restarts": self._restarts,
            "why": self._why,
            **self._also,
        }
        new = self._record.with_suffix(".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE)
        with os.fdopen(descriptor, "w") as file:
            json.dump(told, file)
        new.replace(self._record)

    def _trim(self) -> None:
        """Keep one former log beside the one that is written, which keeps its name for the command."""
        if time.monotonic() < self._log_due:
            return
        self._log_due = time.monotonic() + _LOG_EVERY
        with suppress(OSError):
            if self._log.stat().st_size > LARGEST_LOG:
                shutil.copy(self._log, self._log.with_suffix(".log.1"))
                os.truncate(self._log, 0)


def main() -> None:
    """Lock, and keep the command running until a signal."""
    launcher, record, log, patience, *command = sys.argv[1:]
    # Inherited by nothing: descriptors of Python are not.
    lock = os.open(f"{record}.lock", os.O_RDWR | os.O_CREAT, _PRIVATE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit("another keeper has this process")
    keeper = Keeper(launcher, Path(record), Path(log), float(patience), command)
    keeper.end_on_signals()
    try:
        keeper.run()
    finally:
        os.close(lock)


if __name__ == "__main__":
    main()
