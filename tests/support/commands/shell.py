"""A folder that commands are typed in, as a user would, with a state of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

BIN = Path(sys.executable).parent
LIMIT = 900


@dataclass(frozen=True)
class Shell:
    """A folder that commands are typed in, and a state of its own."""

    folder: Path

    @property
    def env(self) -> dict[str, str]:
        path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        return os.environ | {"PATH": path, "XDG_STATE_HOME": str(self.folder / "state"), "COLUMNS": "200"}

    def typed(self, line: str, code: int = 0) -> str:
        """Type a line; return what it prints on both streams."""
        ended = self._ended(line)
        assert ended.returncode == code, (line, ended.stdout, ended.stderr)
        return ended.stdout + ended.stderr

    def output(self, line: str) -> str:
        """Type a line; return what it prints to stdout where it succeeds, else all of it."""
        ended = self._ended(line)
        return ended.stdout if ended.returncode == 0 else f"exit code {ended.returncode}\n{ended.stdout}{ended.stderr}"

    def _ended(self, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )

    def processes(self) -> list[int]:
        """Return what runs for the sandbox: its process, and the brokers beneath that."""
        record = self.folder / "state" / "anabranch" / "sandbox" / "up"
        one = psutil.Process(int(record.read_text().splitlines()[0]))
        return [one.pid, *(child.pid for child in one.children(recursive=True))]
