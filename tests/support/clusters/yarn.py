"""A YARN cluster on this machine: Hadoop's own, in one process, which starts real containers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pyspark

from reconciler.embedded.jars import Coordinate, class_path, fetch_jars, java_executable
from tests.support.commands.trees import below
from tests.support.waiting import eventually

NODES = 2
# Of each node: MiB and cores.
MEMORY, CORES = 6_144, 8
# That the cluster grants an application.
ATTEMPTS = 20
PROGRAM = Path(__file__).parent / "java" / "MiniYarn.java"
# What the description of that artifact leaves out; the rest comes with pyspark, which is of the same version.
JARS = tuple(
    Coordinate(group, artifact, version, transitive=False)
    for group, artifact, version in (
        ("org.apache.hadoop", "hadoop-client-minicluster", "3.5.0"),
        ("org.junit.jupiter", "junit-jupiter-api", "5.11.4"),
        ("org.junit.platform", "junit-platform-commons", "1.11.4"),
        ("org.opentest4j", "opentest4j", "1.3.0"),
        ("org.mockito", "mockito-core", "4.11.0"),
        ("org.bouncycastle", "bcpkix-jdk18on", "1.78.1"),
        ("org.bouncycastle", "bcprov-jdk18on", "1.78.1"),
        ("org.bouncycastle", "bcutil-jdk18on", "1.78.1"),
    )
)


class Yarn:
    """A cluster.

    Args:
        folder: for its logs, its configuration and the containers' work.

    Attributes:
        url: of the ResourceManager's web interface.
        configuration: the folder with its configuration for clients.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.configuration = folder / "conf"
        jars = class_path(fetch_jars("yarn-minicluster", JARS, None))
        spark = class_path(Path(pyspark.__file__).parent / "jars")
        size = [str(one) for one in (NODES, MEMORY, CORES, ATTEMPTS)]
        command = [str(java_executable()), "-Xmx512m", "-cp", f"{jars}:{spark}", str(PROGRAM)]
        with (folder / "out.log").open("wb") as out, (folder / "err.log").open("wb") as err:
            self._process = subprocess.Popen(
                [*command, str(self.configuration), *size], stdin=subprocess.PIPE, stdout=out, stderr=err, cwd=folder
            )

        def url() -> str:
            assert self._process.poll() is None, (folder / "err.log").read_text()[-3_000:]
            return (folder / "out.log").read_text().strip()

        self.url = eventually("YARN has begun", url, lambda found: found.startswith("http"))

    def masters(self) -> list[psutil.Process]:
        """Return the JVMs of the applications that run."""

        def is_one(process: psutil.Process) -> bool:
            words = process.cmdline()
            # A shell that starts a container has its whole command in one word.
            return any(word.endswith("yarn.ApplicationMaster") for word in words) and "java" in words[0]

        return below(self._process.pid, is_one)

    def stop(self) -> None:
        """End it, with all containers."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        self._process.wait()
        for one in children:
            if one.is_running():
                one.kill()


@contextmanager
def yarn(folder: Path) -> Iterator[Yarn]:
    """Run a cluster while it is used as a context manager."""
    made = Yarn(folder)
    try:
        yield made
    finally:
        made.stop()
