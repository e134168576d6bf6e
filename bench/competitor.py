"""What a competitor is: the scene it is given and the three things it is asked to do.

`ours` and `mm2` implement it, `race` and `watch` use it.
"""

from __future__ import annotations

import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from reconciler.embedded import EmbeddedCluster
from reconciler.model.errors import EnvironmentFault, Problem

_TAIL_LINES = 30


@dataclass(frozen=True)
class Scene:
    """One start of one competitor.

    Attributes:
        source: the cluster with the topic.
        target: the cluster that gets the remote topic `<alias>.<topic>`.
        alias: the name under which this start knows the source; new for each start, and with it the remote topic.
        topic: the topic at the source.
        codec: how its batches are compressed.
        folder: an empty folder for this start's files.
    """

    source: EmbeddedCluster
    target: EmbeddedCluster
    alias: str
    topic: str
    codec: str
    folder: Path

    @property
    def remote(self) -> str:
        """The remote topic's name under the default replication policy."""
        return f"{self.alias}.{self.topic}"

    @property
    def log(self) -> Path:
        """Where the competitor's output goes."""
        return self.folder / "output.log"


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

    def start(self, scene: Scene) -> subprocess.Popen[bytes]:
        """Start the process that replicates, with its output in the scene's log, and return at once."""

    def finish(self, scene: Scene, process: subprocess.Popen[bytes]) -> None:
        """End it in order, now that everything is replicated."""


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
