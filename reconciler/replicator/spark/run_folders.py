"""The folders of runs, for Spark's log and files: for this user alone, and removed with the process.

A process holds the folders that it has made: it has locked a file in each of them. The folders of a killed process are
removed by the next process that starts. On a machine whose kernel is the one that the folder was made under, the lock
decides, as the kernel releases it with the process, whatever container that ran in; nothing of an earlier boot of this
machine can still hold one. Folders of other machines stay: a home may be shared.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from reconciler.model.base.files import open_private
from reconciler.state.journals import process

LOG = "spark.log"
KEPT_LOGS = 5
"""The logs of so many killed runs are kept, for each topology, as they may hold the cause."""

_MARK = ".process"
_LONGEST_MARK = 4096
_NEW = ".new-"
_NAMES = re.compile(rf"\d{{8}}T\d{{6}}-.+-\d+|verify-[0-9a-f]{{12}}|{re.escape(_NEW)}.+")
_MACHINE = Path("/etc/machine-id")
# Folders that this process has made and not removed, each with its locked file.
_held: dict[Path, IO[str]] = {}


def make(folder: Path) -> None:
    """Make the folder of a run, and hold it until it is removed or this process ends.

    Args:
        folder: `<topology>/<run>` below where runs are kept; it must not be there.

    Raises:
        OSError: it cannot be made, or is there already.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Under a temporary name until it is held: no other process finds a folder that is made and not held.
    new = Path(tempfile.mkdtemp(prefix=_NEW, dir=folder.parent))
    try:
        # Independent of the umask.
        new.chmod(0o700)
        mark = open_private(new / _MARK)
        with contextlib.suppress(OSError):
            # A file system without locks: then only a process of this very kernel is known to be gone.
            fcntl.flock(mark, fcntl.LOCK_EX)
        json.dump({"process": process.own_name(), "machine": _machine()}, mark)
        mark.flush()
        if folder.exists() or folder.is_symlink():
            raise FileExistsError(17, os.strerror(17), str(folder))
        new.rename(folder)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    _held[folder] = mark


def remove(folder: Path) -> None:
    """Remove a folder that `make` has made, and whatever is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    mark = _held.pop(folder, None)
    if mark is not None:
        mark.close()


def sweep(state: Path) -> None:
    """Remove the folders of runs of this user whose processes are gone, of all topologies; links are not followed.

    Args:
        state: where runs are kept, a folder for each topology.
    """
    with contextlib.suppress(OSError), os.scandir(state) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError), _opened(entry.path) as topology:
                    _sweep_topology(topology)


def _sweep_topology(topology: int) -> None:
    names = [name for name in os.listdir(topology) if _NAMES.fullmatch(name)]
    ended = sorted(((at, name) for name in names if (at := _ended(topology, name)) is not None), reverse=True)
    for number, (_, name) in enumerate(ended):
        if number >= KEPT_LOGS or not _keep_log(topology, name):
            shutil.rmtree(name, ignore_errors=True, dir_fd=topology)


def _ended(topology: int, name: str) -> float | None:
    """Return when a run began (seconds since 1970) whose process is certainly gone, else None."""
    unreadable = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
    with contextlib.suppress(*unreadable), _opened(name, topology) as folder:
        number = os.open(_MARK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(number, "r+", encoding="utf-8") as mark:
            is_let_go = _is_let_go(mark)
            value = json.loads(mark.read(_LONGEST_MARK))
            if is_let_go is not False and _is_gone(value["process"], value["machine"], is_let_go is True):
                return os.fstat(number).st_mtime
    return None


def _is_let_go(mark: IO[str]) -> bool | None:
    """Return whether no process holds a folder any more; None where its file system has no locks."""
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_gone(name: str, machine: str, is_let_go: bool) -> bool:
    host, boot, namespace = name.split("/")[:3]
    own_host, own_boot, own_namespace = process.own_name().split("/")[:3]
    if not (boot and own_boot):
        return False
    if boot == own_boot:
        # Process ids are valid in their own namespace alone, locks in all of them.
        return process.is_gone(name) if (host, namespace) == (own_host, own_namespace) else is_let_go
    return is_let_go and host == own_host and machine != "" and machine == _machine()


def _keep_log(topology: int, name: str) -> bool:
    """Remove everything of a run but its log; return whether it has one."""
    with contextlib.suppress(OSError), _opened(name, topology) as folder, os.scandir(folder) as entries:
        there = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        if LOG not in there:
            return False
        for entry in there.keys() - {LOG, _MARK}:
            if there[entry]:
                shutil.rmtree(entry, ignore_errors=True, dir_fd=folder)
            else:
                os.unlink(entry, dir_fd=folder)
        return True
    return False


@contextlib.contextmanager
def _opened(path: str, within: int | None = None) -> Iterator[int]:
    """Open a folder of this user, so that nothing in it is reached through a link.

    Raises:
        OSError: there is none of that name, or it is another user's.
    """
    number = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=within)
    try:
        if os.fstat(number).st_uid != os.geteuid():
            raise PermissionError(1, os.strerror(1), path)
        yield number
    finally:
        os.close(number)


def _machine() -> str:
    """Return the machine's id, which outlives a boot (machine-id(5)); "" where there is none."""
    try:
        return _MACHINE.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
