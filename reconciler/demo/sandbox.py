"""A sandbox: the demo's clusters, with orders coming in and an application that reads them, until they are taken down.

A process of its own holds them (`sandbox_process`), so that they outlive the command. One user has one sandbox.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.files import UnreadableFile, make_private, read_text, state_home

GROUP = "order-reports"
"""The consumer group of the application that reads orders at their source."""
_TICK = 0.2
_END_SECONDS = 60.0
_TAIL = 15


@dataclass(frozen=True)
class Sandbox:
    """A sandbox that is up.

    Attributes:
        pid: of the process that holds it.
        file: the topology file with its clusters.
        mirror_maker: the configuration of the MirrorMaker 2 that copies between them; None without one.
        mirror_maker_pid: its process; 0 without one.
    """

    pid: int
    file: Path
    mirror_maker: Path | None = None
    mirror_maker_pid: int = 0

    def text(self) -> str:
        """Return what the process writes down of it, once it is up."""
        return f"{self.pid}\n{self.file}\n{self.mirror_maker or ''}\n{self.mirror_maker_pid}\n"


def home() -> Path:
    """Return the folder that a user's sandbox has for itself."""
    return state_home() / "anabranch" / "sandbox"


def record() -> Path:
    """Return the file that is there while a sandbox is up."""
    return home() / "up"


@contextlib.contextmanager
def held() -> Iterator[bool]:
    """Hold the lock of the sandbox meanwhile; yield whether it could be had."""
    make_private(home())
    with (home() / "lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True


def current() -> Sandbox | None:
    """Return the sandbox that is up; None where none is, or it is only coming up."""
    with held() as is_free:
        if is_free:
            return None
    with contextlib.suppress(OSError, UnreadableFile, ValueError):
        pid, file, mirror_maker, mirror_maker_pid = read_text(record()).splitlines()
        return Sandbox(int(pid), Path(file), Path(mirror_maker) if mirror_maker else None, int(mirror_maker_pid))
    return None


def up(pattern: str, file: Path, *, with_mirror_maker: bool) -> Sandbox:
    """Start a sandbox, and return once orders come in.

    Args:
        pattern: which example its clusters are of.
        file: where its topology file is written; nothing is there yet.
        with_mirror_maker: whether a MirrorMaker 2 copies between the clusters.

    Raises:
        EnvironmentFault: AB344, one is coming up or going down just now, or it could not be started.
    """
    with held() as is_free:
        if not is_free:
            message = "another one is coming up, or going down, just now"
            raise EnvironmentFault(Problem("AB344", "sandbox", message, "wait, and look with `anabranch sandbox up`"))
        record().unlink(missing_ok=True)
    log = home() / "log"
    command = [sys.executable, "-m", "reconciler.demo.sandbox_process", pattern, str(file.resolve())]
    command += ["--mm2"] if with_mirror_maker else []
    with log.open("wb") as sink:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True)
    try:
        while (found := current()) is None:
            if process.poll() is not None:
                said = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL:]
                problem = Problem("AB344", "sandbox", "it could not be started", f"its log is {log}")
                raise EnvironmentFault(problem, said)
            time.sleep(_TICK)
    except BaseException:
        if process.poll() is None:
            process.terminate()
            process.wait()
        raise
    return found


def down() -> Sandbox | None:
    """Take the sandbox down with all that its clusters hold, and return what it was; None where none was up.

    Raises:
        EnvironmentFault: AB344, it does not end.
    """
    found = current()
    if found is None:
        return None
    with contextlib.suppress(ProcessLookupError):
        os.kill(found.pid, signal.SIGTERM)
    deadline = time.monotonic() + _END_SECONDS
    while time.monotonic() < deadline:
        with held() as is_free:
            if is_free:
                return found
        time.sleep(_TICK)
    message = f"process {found.pid} has not ended within {_END_SECONDS:g} s"
    raise EnvironmentFault(Problem("AB344", "sandbox", message, f"see {home() / 'log'}, and end it by hand"))
