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
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from reconciler.embedded.jars import cache_folder, named_java

# What Java writes about an archive that it cannot take, or has to make: it does without, and nobody need read of it.
_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
# Archives that no start has taken for so many seconds make room.
_KEPT_SECONDS = 7 * 24 * 3600.0
# A machine that is busy takes minutes.
_MAKE_SECONDS = 600.0
_LOWEST_PRIORITY = 19


def taking() -> str:
    """Return the options with which Java takes the archive; empty where there is none."""
    # Of an archive that is not there Java would do without its own one, too.
    path = _path()
    if path is None or not path.exists():
        return ""
    with contextlib.suppress(OSError):
        os.utime(path)
    return f"-XX:SharedArchiveFile={path} {_SILENT}"


def make() -> bool:
    """Make the archive where there is none, and return whether there is one now.

    Nothing is waited for while another process makes it.
    """
    path = _path()
    if path is None or path.exists():
        return path is not None
    with contextlib.suppress(OSError), _locked(path):
        if not path.exists():
            _make_room(path.parent)
            _make(path)
    return path.exists()


class ArchiveMaker:
    """Makes the archive in a process of its own, which runs when nothing else wants the processors."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._has_begun = False

    def begin(self) -> None:
        """Begin, once, unless the archive is there; what fails is left to the next run."""
        if self._has_begun:
            return
        self._has_begun = True
        path = _path()
        if path is None or path.exists():
            return
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__],
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
        self._process = None


@functools.cache
def _path() -> Path | None:
    """Return where the archive lies for this Java and this PySpark; None where its place cannot be named."""
    spec, (java, _) = importlib.util.find_spec("pyspark"), named_java()
    if spec is None or spec.origin is None or java is None:
        return None
    try:
        parts = [Path(java).resolve(), *sorted((Path(spec.origin).parent / "jars").glob("*.jar"))]
        told = "\n".join(f"{one} {(about := one.stat()).st_size} {about.st_mtime_ns}" for one in parts)
    except OSError:
        return None
    path = cache_folder() / f"spark-{hashlib.sha256(told.encode()).hexdigest()[:12]}.jsa"
    # Spark splits the options at spaces.
    return None if any(character.isspace() for character in str(path)) else path


def _make(path: Path) -> None:
    from reconciler.replicator.spark import jobs  # noqa: PLC0415

    made = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with tempfile.TemporaryDirectory(prefix="anabranch-spark-") as scratch:
            spark = jobs.SparkJobs(1, Path(scratch), print)
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


def _make_room(folder: Path) -> None:
    """Remove what nothing takes any more, and what a killed process has left."""
    for archive in (*folder.glob("spark-*.jsa"), *folder.glob(".spark-*.jsa.*")):
        if archive.stat().st_mtime < time.time() - _KEPT_SECONDS:
            archive.unlink(missing_ok=True)


if __name__ == "__main__":
    os.nice(_LOWEST_PRIORITY)
    sys.exit(0 if make() else 1)
