"""Spark that costs less while it begins: what Java makes of Spark's classes is kept in an archive, as with brokers.

A start of Spark loads and checks some twelve thousand classes, and the tests start it some forty times. The first
process that needs the archive has `archived_spark` make it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

from reconciler.embedded.jars import cache_folder, java_executable
from tests.support.clusters.light import locked

SECONDS = 600
# Options of the virtual machine that PySpark starts.
_OPTIONS = "SPARK_SUBMIT_OPTS"
# A Spark that lies elsewhere does without the archive, and nobody need hear of it.
_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"
# Archives of installations that nobody has used for so long make room.
_KEPT_SECONDS = 7 * 24 * 3600


def use() -> None:
    """Let whatever Spark this process and its children start begin with the archive, if Java could make it.

    While another process makes it nobody waits: that would cost more than it gains.
    """
    with contextlib.suppress(BlockingIOError):
        archive = _archive()
        wanted = f"-XX:SharedArchiveFile={archive} {_SILENT}"
        # Told of one that is not there, Java would do without its own one, too.
        if archive.exists() and wanted not in os.environ.get(_OPTIONS, ""):
            os.environ[_OPTIONS] = f"{os.environ.get(_OPTIONS, '')} {wanted}".strip()


@functools.cache
def _archive() -> Path:
    """Return the archive's path; where it could not be made, nothing is there.

    Raises:
        BlockingIOError: somebody else makes it just now.
    """
    path = cache_folder() / f"spark-{_key()}.jsa"
    if path.exists():
        os.utime(path)
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.with_suffix(".lock"), waits=False):
        if not path.exists():
            _make_room(path.parent)
            made = path.with_suffix(".new")
            made.unlink(missing_ok=True)
            environment = os.environ | {_OPTIONS: f"-XX:ArchiveClassesAtExit={made} {_SILENT}"}
            command = [sys.executable, "-m", "tests.support.replicator.archived_spark", str(SECONDS)]
            ended = subprocess.run(
                command,
                env=environment,
                cwd=Path(__file__).parents[3],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
            )
            if ended.returncode == 0:
                made.rename(path)
    return path


@functools.cache
def _key() -> str:
    """Return what Java compares before it takes an archive: its own version, each jar's place, size and time."""
    told = hashlib.sha256(subprocess.run([java_executable(), "-version"], capture_output=True, check=True).stderr)
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    for jar in sorted((Path(spec.origin).parent / "jars").glob("*.jar")):
        about = jar.stat()
        told.update(f"{jar} {about.st_size} {about.st_mtime_ns}\n".encode())
    return told.hexdigest()[:12]


def _make_room(folder: Path) -> None:
    for archive in folder.glob("spark-*.jsa"):
        if archive.stat().st_mtime < time.time() - _KEPT_SECONDS:
            archive.unlink(missing_ok=True)
