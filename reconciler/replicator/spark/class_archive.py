"""Spark's classes as Java has loaded and checked them, in a file from which the next start maps them (AppCDS).

Of the seconds from a command to its first record Java would spend half on these classes, each time anew. The first run
on a machine has a process of the lowest priority make the archive once everything copies; later starts take it. It lies
in the user's cache, for one Java and one PySpark: Java itself compares both before it takes an archive
(https://docs.oracle.com/en/java/javase/17/vm/class-data-sharing.html).

`python -m reconciler.replicator.spark.class_archive` makes it at once, for images and tests.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from reconciler.embedded.jars import cache_folder, named_java, pyspark_jars
from reconciler.model.base.errors import EnvironmentFault
from reconciler.replicator.spark import control_groups

# Turns off what Java logs about an archive that it cannot take: the start goes on without it.
_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
# Archives that no start has taken for so many seconds make room.
_KEPT_SECONDS = 7 * 24 * 3600.0
# A machine that is busy takes minutes.
_MAKE_SECONDS = 600.0
_LOWEST_PRIORITY = 19
# Bytes that have to be left for a second Spark.
_MEMORY = 2**30


def taking() -> str:
    """Return the options with which Java takes the archive; empty where there is none."""
    # Of an archive that is not there Java would do without its own one, too.
    path = _path()
    if path is None or not path.exists():
        return ""
    with contextlib.suppress(OSError):
        os.utime(path)
    return f"-XX:SharedArchiveFile={path} {_SILENT}"


def make(folder: Path) -> bool:
    """Make the archive where there is none, and return whether there is one now.

    Nothing is waited for while another process makes it.

    Args:
        folder: for Spark's log and files; it must exist.
    """
    path = _path()
    if path is None or path.exists():
        return path is not None
    with contextlib.suppress(OSError), _locked(path):
        if not path.exists():
            _make_room(path.parent)
            _make(path, folder)
    return path.exists()


class ArchiveMaker:
    """Makes the archive in a process of its own, of the lowest priority.

    Args:
        folder: for Spark's log and files; made when it is needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._has_begun = False

    def begin(self) -> None:
        """Begin, once, unless the archive is there; what fails is left to the next run."""
        if self._has_begun:
            return
        self._has_begun = True
        path = _path()
        # Where it cannot be kept, or where its maker could be what ends the run, starts stay as they are.
        if path is None or path.exists() or control_groups.memory_left() < _MEMORY or not _is_writable(path.parent):
            return
        with contextlib.suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(self._folder)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def end(self) -> None:
        """End the process, with the Java that it has started: a run leaves nothing behind."""
        if self._process is None:
            return
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        if (path := _path()) is not None:
            _unfinished(path, self._process.pid).unlink(missing_ok=True)
        self._process = None


@functools.cache
def _path() -> Path | None:
    """Return where the archive lies for this Java and this PySpark; None where its place cannot be named."""
    java, _ = named_java()
    if java is None:
        return None
    try:
        parts = [Path(java).resolve(), *sorted(pyspark_jars().glob("*.jar"))]
        told = "\n".join(f"{one} {(about := one.stat()).st_size} {about.st_mtime_ns}" for one in parts)
    except (EnvironmentFault, OSError):
        return None
    path = cache_folder() / f"spark-{hashlib.sha256(told.encode()).hexdigest()[:12]}.jsa"
    # Spark splits the options at spaces.
    return None if any(character.isspace() for character in str(path)) else path


def _unfinished(path: Path, process: int) -> Path:
    """Return where a process writes the archive until it is whole."""
    return path.with_name(f".{path.name}.{process}")


def _make(path: Path, folder: Path) -> None:
    from reconciler.replicator.spark import jobs  # noqa: PLC0415

    made = _unfinished(path, os.getpid())
    try:
        spark = jobs.SparkJobs(1, folder, print)
        spark.java_options = f"-XX:ArchiveClassesAtExit={made} {_SILENT}"
        spark.open()
        try:
            spark.start()
            spark.run(str.upper, "archived")
        finally:
            # Java writes the archive as it ends.
            spark.stop(_MAKE_SECONDS)
        if made.exists():
            made.rename(path)
    finally:
        made.unlink(missing_ok=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of an archive.

    Raises:
        OSError: another process has it, or nothing can be written there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def _is_writable(folder: Path) -> bool:
    """Return whether a folder is there, or can be made, and written to."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    return there.is_dir() and os.access(there, os.W_OK)


def _make_room(folder: Path) -> None:
    """Remove what nothing takes any more, and what a killed process has left."""
    for archive in (*folder.glob("spark-*.jsa"), *folder.glob(".spark-*.jsa.*")):
        if archive.stat().st_mtime < time.time() - _KEPT_SECONDS:
            archive.unlink(missing_ok=True)


def main() -> int:
    """Make the archive at once; the folder for Spark's files may be named."""
    os.nice(_LOWEST_PRIORITY)
    if sys.argv[1:]:
        return 0 if make(Path(sys.argv[1])) else 1
    with tempfile.TemporaryDirectory(prefix="anabranch-spark-") as scratch:
        return 0 if make(Path(scratch)) else 1


if __name__ == "__main__":
    sys.exit(main())
