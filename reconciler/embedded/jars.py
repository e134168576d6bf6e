"""Finds Java and fetches jars once into the user's cache, with the Ivy that PySpark ships.

Called by `broker` for Kafka's own jars and by the bench for others. It must not import pyspark (only its folder is
looked up) and must not start brokers. Beside it lies `jars.sha256`, with the hash of every jar that may be fetched: Ivy
itself compares with a checksum from where the jar came from.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import logging
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from reconciler.model.base.errors import EnvironmentFault, Problem

KAFKA_VERSION = "4.4.0"
MIRROR_MAKER_VERSION = "4.3.1"
"""The newest MirrorMaker 2 that Apache has published to Maven Central; it takes clients of its own version."""
OLDEST_JAVA = 17
FETCH_SECONDS = 900
TAIL_LINES = 15

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Coordinate:
    """One artifact of a Maven repository, with all it depends on unless `transitive` is off."""

    group: str
    artifact: str
    version: str
    transitive: bool = True

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


def logging_of(version: str) -> tuple[Coordinate, ...]:
    """Return what Kafka logs by: through SLF4J 1.7, and without a binding, which it does not depend on, not at all.

    Args:
        version: of log4j; the one that the version of Kafka brings along, if it does.
    """
    # Named one by one, since Ivy takes the test libraries of log4j for dependencies.
    artifacts = ("log4j-slf4j-impl", "log4j-core", "log4j-api")
    return tuple(Coordinate("org.apache.logging.log4j", one, version, transitive=False) for one in artifacts)


KAFKA = {
    folder: (Coordinate("org.apache.kafka", artifact, version), *logging_of(log4j))
    for folder, artifact, version, log4j in (
        ("kafka", "kafka_2.13", KAFKA_VERSION, "2.25.5"),
        ("connect-mirror", "connect-mirror", MIRROR_MAKER_VERSION, "2.25.4"),
        ("connect-mirror-client", "connect-mirror-client", MIRROR_MAKER_VERSION, "2.25.4"),
        ("kafka-tools", "kafka-tools", KAFKA_VERSION, "2.25.5"),
    )
}
"""What is fetched of Kafka: a broker's jars, MirrorMaker 2's, those of its client, and Kafka's own tools."""
KNOWN = Path(__file__).with_name("jars.sha256")


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that keeps fetched jars: `$ANABRANCH_CACHE`, else the user's cache folder."""
    if own := environ.get("ANABRANCH_CACHE"):
        return Path(own)
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "anabranch"


def java_executable(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the `java` to run: `$JAVA_HOME/bin/java`, else the first on `$PATH`.

    Raises:
        EnvironmentFault: AB301, there is none or it is older than Java 17.
    """
    found, where = named_java(environ)
    if found is None or not os.access(found, os.X_OK):
        raise _java_fault(where, f"expected Java {OLDEST_JAVA} or newer, found no executable {found or 'java'}")
    version = java_version(found)
    if version < OLDEST_JAVA:
        raise _java_fault(where, f"expected Java {OLDEST_JAVA} or newer, {found} is {version or 'not a Java'}")
    return Path(found)


def named_java(environ: Mapping[str, str] = os.environ) -> tuple[str | None, str]:
    """Return the path of the `java` that would be run, of whatever version, and the variable that names it."""
    if home := environ.get("JAVA_HOME"):
        return str(Path(home) / "bin" / "java"), "JAVA_HOME"
    return shutil.which("java", path=environ.get("PATH", os.defpath)), "PATH"


def fetch_kafka(what: str = "kafka") -> Path:
    """Return the folder with jars of Kafka, fetching them on first use.

    Args:
        what: a key of `KAFKA`; by default a broker's.

    Raises:
        EnvironmentFault: AB301 without Java, AB302 when the fetch fails or brings another jar than is known.
    """
    return fetch_jars(_folder_name(what), KAFKA[what], known_jars())


def is_fetched(what: str = "kafka") -> bool:
    """Return whether jars of Kafka are there already; `what` is a key of `KAFKA`."""
    return (cache_folder() / _folder_name(what)).is_dir()


def version_of(what: str = "kafka") -> str:
    """Return the version of Kafka that is fetched; `what` is a key of `KAFKA`."""
    return KAFKA[what][0].version


def fetched_bytes() -> int:
    """Return how many bytes the fetching tool has brought so far, of whatever was ever fetched."""
    total = 0
    for file in (cache_folder() / "ivy").rglob("*"):
        # It names files anew when they are whole.
        with contextlib.suppress(OSError):
            total += file.stat().st_size if file.is_file() else 0
    return total


def known_jars() -> dict[str, str]:
    """Return the SHA-256 of every jar that may be fetched, as 64 hexadecimal digits, by the name of its file."""
    lines = KNOWN.read_text(encoding="utf-8").splitlines()
    return {name: sha for sha, _, name in (line.partition("  ") for line in lines if not line.startswith("#"))}


def fetch_jars(folder_name: str, coordinates: Sequence[Coordinate], known: Mapping[str, str] | None) -> Path:
    """Return `<cache>/<folder_name>` with the jars of all coordinates, fetching them on first use.

    The folder appears whole or not at all, and two processes never fetch at once. What was fetched is held against
    `known` before the folder appears, and not again.

    Args:
        folder_name: of the cache's folder.
        coordinates: what is fetched.
        known: the SHA-256 of every jar that may come, by the name of its file; None accepts any.

    Raises:
        EnvironmentFault: AB301 without Java, AB302 when the fetch fails or brings another jar than is known.
    """
    folder = cache_folder() / folder_name
    if folder.is_dir():
        return folder
    java = java_executable()
    with _fetch_lock(folder):
        if folder.is_dir():
            return folder
        staging = Path(tempfile.mkdtemp(prefix=f".{folder_name}-", dir=folder.parent))
        try:
            for coordinate in coordinates:
                _log.info("fetching %s into %s", coordinate, folder)
                _fetch_one(java, coordinate, staging)
            if known is not None:
                _refuse_others(staging, known)
            staging.chmod(0o755)
            staging.rename(folder)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return folder


def class_path(folder: Path) -> str:
    """Return the Java class path that holds every jar of a fetched folder."""
    return str(folder / "*")


def _folder_name(what: str) -> str:
    return f"{what}-{version_of(what)}"


def _fetch_one(java: Path, coordinate: Coordinate, into: Path) -> None:
    command = [str(java), "-cp", class_path(pyspark_jars()), "org.apache.ivy.Main"]
    command += ["-dependency", coordinate.group, coordinate.artifact, coordinate.version]
    command += [] if coordinate.transitive else ["-notransitive"]
    # Some jars are published with packaging `bundle`; naming the types keeps sources and javadoc out.
    command += ["-types", "jar", "bundle", "-cache", str(cache_folder() / "ivy")]
    command += ["-retrieve", f"{into}/[artifact]-[revision](-[classifier]).[ext]"]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=FETCH_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as slow:
        raise _fetch_fault(coordinate, f"Ivy did not end within {FETCH_SECONDS} s") from slow
    if done.returncode != 0 or not any(into.glob(f"{coordinate.artifact}-*.jar")):
        message = f"Ivy ended with {done.returncode}; its last lines are below"
        raise _fetch_fault(coordinate, message, done.stdout.splitlines()[-TAIL_LINES:])


def _refuse_others(folder: Path, known: Mapping[str, str]) -> None:
    """Hold every fetched file against what is known.

    Raises:
        EnvironmentFault: AB302, for each that is another one, or unknown.
    """
    problems = []
    for path in sorted(folder.iterdir()):
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if (expected := known.get(path.name)) != found:
            message = f"expected SHA-256 {expected or 'of a known jar'}, fetched was one of {found}; it is not used"
            remedy = (
                f"delete {cache_folder() / 'ivy'} and try again; if it stays so, the repository that jars come from "
                "has another file than the one that Anabranch was tested with"
            )
            problems.append(Problem("AB302", path.name, message, remedy))
    if problems:
        raise EnvironmentFault(problems)


def pyspark_jars() -> Path:
    """Return the folder of PySpark's jars, found by looking its package up: importing it would load all of it.

    Raises:
        EnvironmentFault: AB302, there is no PySpark.
    """
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        problem = Problem("AB302", "python environment", "expected the package pyspark, found none", "install pyspark")
        raise EnvironmentFault(problem)
    return Path(spec.origin).parent / "jars"


@contextmanager
def _fetch_lock(folder: Path) -> Iterator[None]:
    """Hold the cache's one lock: Ivy's own cache, shared by all fetches, is not safe for two at once."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = (folder.parent / "fetch.lock").open("w")
    except OSError as denied:
        remedy = "set ANABRANCH_CACHE to a folder that can be written"
        raise EnvironmentFault(Problem("AB302", str(folder.parent), f"cannot be written: {denied}", remedy)) from denied
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@cache
def java_version(java: str) -> int:
    """Return the feature version that `java -version` prints, 0 when it prints none."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found.group(1)) if found else 0


def _java_fault(where: str, message: str) -> EnvironmentFault:
    return EnvironmentFault(Problem("AB301", where, message, "install Java 17 or newer, or set JAVA_HOME to one"))


def _fetch_fault(coordinate: Coordinate, message: str, log: Sequence[str] = ()) -> EnvironmentFault:
    remedy = "check the network and the proxy settings of Java, then try again"
    return EnvironmentFault(Problem("AB302", str(coordinate), f"could not be fetched: {message}", remedy), log)
