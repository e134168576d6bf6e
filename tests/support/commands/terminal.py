"""A command whose stderr is a terminal: what it draws there, what is left of that, and how it ends."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import subprocess
import termios
import threading
import time
from collections.abc import Callable
from types import TracebackType

from tests.support.commands.command import COMMAND, LIMIT_SECONDS, Ended
from tests.support.commands.trees import kill_tree

_ROWS, _COLUMNS = 50, 200
_CHUNK = 65_536
_LOOK_SECONDS = 0.02
_SEQUENCE = re.compile(r"\x1b\[([?\d;]*)([A-Za-z])")
_PERCENT = re.compile(r"(\d+)%")


class Drawn(io.StringIO):
    """What is drawn on a terminal, in this process."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


class OnTerminal:
    """One command, from the start of the block; at its end nothing of it runs any more.

    Args:
        arguments: of the command.
    """

    def __init__(self, *arguments: object) -> None:
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (_ROWS, _COLUMNS))
        # These would be believed before the terminal.
        known = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        try:
            self._process = subprocess.Popen(
                [*COMMAND, *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=theirs,
                text=True,
                start_new_session=True,
                env=known | {"TERM": "xterm-256color"},
            )
        finally:
            os.close(theirs)
        self._drawn: list[bytes] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> OnTerminal:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()
        os.close(self._ours)

    @property
    def drawn(self) -> str:
        """All that was written to the terminal so far."""
        return b"".join(self._drawn).decode(errors="replace")

    @property
    def frames(self) -> list[str]:
        """The lines that were to be seen one after the other, without colours."""
        lines = re.split(r"[\r\n]+", _SEQUENCE.sub("", self.drawn))
        return [line.rstrip() for line in lines if line.strip()]

    @property
    def percents(self) -> list[int]:
        """How far the bar was, one frame after the other."""
        return [int(found[1]) for line in self.frames if (found := _PERCENT.search(line))]

    @property
    def screen(self) -> list[str]:
        """The lines that stand on the terminal now."""
        return [line.rstrip() for line in screen_of(self.drawn) if line.strip()]

    def wait_until(self, seen: Callable[[OnTerminal], bool], limit: float = LIMIT_SECONDS) -> None:
        """Wait until something was drawn; it must be while the command runs."""
        deadline = time.monotonic() + limit
        while not seen(self):
            assert self._process.poll() is None, f"it has ended with {self._process.returncode}: {self.frames}"
            assert time.monotonic() < deadline, self.frames
            time.sleep(_LOOK_SECONDS)

    def end(self, limit: float = LIMIT_SECONDS) -> Ended:
        """Wait for its own end; stderr is what is left on the terminal."""
        stdout, _ = self._process.communicate(timeout=limit)
        self._reader.join(LIMIT_SECONDS)
        return Ended(self._process.returncode, stdout, "\n".join(self.screen))

    def kill(self) -> None:
        """Kill it, and all that it has started."""
        kill_tree(self._process.pid)
        self._process.wait()
        self._reader.join(LIMIT_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> None:
        # Linux says EIO when nobody holds the other end any more.
        with contextlib.suppress(OSError):
            while some := os.read(self._ours, _CHUNK):
                self._drawn.append(some)


def screen_of(drawn: str) -> list[str]:
    """Return the lines of a terminal on which something was drawn, as far as bars draw: what else there is, fails."""
    lines, row, column, at = [""], 0, 0, 0
    while at < len(drawn):
        if found := _SEQUENCE.match(drawn, at):
            at, (count, kind) = found.end(), found.groups()
            if kind == "A":
                row = max(0, row - int(count or 1))
            elif (kind, count) == ("K", "2"):
                lines[row] = ""
            else:
                # Colours, and whether the cursor is to be seen.
                assert kind in "mhl", found[0]
            continue
        letter, at = drawn[at], at + 1
        if letter == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif letter == "\r":
            column = 0
        else:
            lines[row] = lines[row][:column].ljust(column) + letter + lines[row][column + 1 :]
            column += 1
    return lines
