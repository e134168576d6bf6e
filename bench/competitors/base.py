"""What a competitor is: the scene it is given and what it is asked to do.

`ours`, `mm2` and `follower` implement it, `race` and `watch` use it.
"""

from __future__ import annotations

import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from bench.instruments.sample import sample_fault
from bench.instruments.segments import TopicLog
from bench.workload.load import Load
from bench.workload.topics import remove
from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import EnvironmentFault, Problem

_TAIL_LINES = 30


@dataclass(frozen=True)
class Scene:
    """One start of one competitor.

    Attributes:
        source: the cluster with the topic.
        target: the cluster that gets the remote topic `<alias>.<topic>`.
        alias: the name under which this start knows the source; new for each start, and with it the remote topic.
        topic: the topic at the source.
        load: what it holds.
        folder: an empty folder for this start's files.
    """

    source: EmbeddedCluster
    target: EmbeddedCluster
    alias: str
    topic: str
    load: Load
    folder: Path

    @property
    def remote(self) -> str:
        """The remote topic's name under the default replication policy."""
        return f"{self.alias}.{self.topic}"

    @property
    def replicas(self) -> int:
        """How many replicas a remote topic gets: one on each node of the target, at most three."""
        return min(3, self.target.options.nodes)

    @property
    def topology(self) -> Path:
        """Where a topology file of Anabranch's is kept."""
        return self.folder / "topology.yaml"

    @property
    def log(self) -> Path:
        """Where the competitor's output goes."""
        return self.folder / "output.log"


def alias_of(name: str, number: int) -> str:
    """Return the alias of a start: none may begin as topics of Anabranch's own do.

    Args:
        name: of the competitor.
        number: of the start.
    """
    return f"by-{name}-{number}"


class Running(Protocol):
    """A process that replicates; `subprocess.Popen` is one.

    Attributes:
        pid: the process at the root of all that it starts.
    """

    @property
    def pid(self) -> int:
        """The process at the root of all that replicates."""

    def poll(self) -> int | None:
        """Return None while it runs, else its exit code."""


class Competitor(Protocol):
    """Something that replicates a topic.

    Attributes:
        name: short, for aliases: letters, digits and dashes.
        title: for the report.
        guarantee: what it promises: `exactly once` or `at least once`.
    """

    name: str
    title: str
    guarantee: str

    def prepare(self, scene: Scene) -> None:
        """Do what is done before a start: configuration, topics."""

    def start(self, scene: Scene) -> Running:
        """Start what replicates, with its output in the scene's log, and return at once."""

    def copy(self, scene: Scene) -> TopicLog:
        """Return the log in which the copy grows."""

    def finish(self, scene: Scene) -> None:
        """End it in order, now that everything is replicated."""

    def check(self, scene: Scene) -> None:
        """Compare a sample of the copy with the original.

        Raises:
            EnvironmentFault: AB352, they differ: what was measured is void.
        """

    def clear(self, scene: Scene) -> None:
        """End what still runs, however far it got, and remove the copy."""


class Replicator:
    """What the competitors that are a process of their own have in common.

    Attributes:
        keeps_offsets: whether the copy has the original's offsets.
    """

    keeps_offsets = False

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def copy(self, scene: Scene) -> TopicLog:
        """Return the remote topic's log, as the target's first node has it."""
        return TopicLog(scene.target.broker().data, scene.remote, scene.load.partitions)

    def check(self, scene: Scene) -> None:
        """Compare a sample of the remote topic with the topic.

        Raises:
            EnvironmentFault: AB352, they differ.
        """
        sides = (scene.source.client_config(), scene.topic), (scene.target.client_config(), scene.remote)
        if problem := sample_fault(*sides, scene.load.partitions, self.keeps_offsets):
            raise void(scene, problem)

    def clear(self, scene: Scene) -> None:
        """Kill what still runs and remove the remote topic."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._process = None
        remove(scene.target, scene.remote)


def end(process: subprocess.Popen[bytes], number: signal.Signals, seconds: float) -> None:
    """Send a signal and wait; kill what does not end in time."""
    if process.poll() is None:
        process.send_signal(number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def fault(scene: Scene, message: str) -> EnvironmentFault:
    """Return the error that names a start and shows the end of its output."""
    lines = scene.log.read_text(errors="replace").splitlines() if scene.log.exists() else []
    tail = "\n".join(lines[-_TAIL_LINES:])
    return EnvironmentFault(Problem("AB350", scene.alias, f"{message}; the end of its output:\n{tail}\n", ""))


def void(scene: Scene, message: str) -> EnvironmentFault:
    """Return the error that voids a measurement, since the copy is not the original."""
    return EnvironmentFault(Problem("AB352", scene.alias, f"the copy is not the original: {message}", ""))
