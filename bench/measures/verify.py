"""Verify: how long it takes to compare a copy with its original, beside two console consumers that only read them.

Called by the command line. Anabranch copies the load; then Kafka's console consumers read original and copy to
nowhere, side by side, and `anabranch verify` compares the two; one after the other, in each run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.competitors.base import Scene, fault
from bench.competitors.ours import Anabranch
from bench.instruments.procs import ProcessTree
from bench.reports.bars import Bar, bars_table
from bench.reports.table import machine_lines, table
from bench.workload.load import Load, produce
from bench.workload.topics import create, remove
from reconciler.embedded import STEADY_JVM, ClusterOptions, EmbeddedCluster, running
from reconciler.embedded.jars import class_path, fetch_kafka, java_executable
from reconciler.embedded.launch import start_child

_TOPIC = "orders"
_LOOK = 0.05
_PATIENCE = 1_800.0
_VERIFY = (sys.executable, "-m", "reconciler.cli.main", "verify")
_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_LEAST_RATIO = 2.0

_NOTES = """\
The consumers are Kafka's own (`kafka-console-consumer`), one for each side at the same time, from the first record to
the last, with what they print thrown away: they read and decode, and compare nothing. Both kinds are processes from
their start to their end, Java's and Spark's start included, and their CPU seconds are those of all that they start.
"""


@dataclass(frozen=True)
class Measured:
    """One kind of reading.

    Attributes:
        seconds: from the start of its processes to the end of the last.
        cpu: their CPU seconds.
    """

    seconds: float
    cpu: float


@dataclass(frozen=True)
class VerifyResult:
    """All runs: of the consumers and of `verify`, and the machine's load average before."""

    load: Load
    consumers: tuple[Measured, ...]
    verify: tuple[Measured, ...]
    load_before: float

    @property
    def ratio(self) -> float:
        """How many times as long the consumers take, of the medians."""
        return median(one.seconds for one in self.consumers) / median(one.seconds for one in self.verify)


def verify(load: Load, runs: int, say: Callable[[str], None]) -> VerifyResult:
    """Copy a load, and read both sides in both ways, `runs` times.

    Args:
        load: what is copied.
        runs: how often it is read.
        say: called with a line of progress.

    Raises:
        EnvironmentFault: AB350, something does not do its part, or the copy is not called equal.
    """
    load_before = os.getloadavg()[0]
    options = ClusterOptions(jvm=STEADY_JVM)
    jars = fetch_kafka("kafka-tools")
    with (
        tempfile.TemporaryDirectory(prefix="anabranch-verify-") as folder,
        running(EmbeddedCluster("source", options), EmbeddedCluster("target", options)) as (source, target),
    ):
        create(source, _TOPIC, load.partitions)
        say(f"producing {load.records:,} records")
        produce(source.client_config(), _TOPIC, load)
        scene = Scene(source, target, "verify", _TOPIC, load, Path(folder))
        anabranch = Anabranch(1)
        try:
            anabranch.prepare(scene)
            say("copying them")
            anabranch.start(scene).wait(_PATIENCE)
            anabranch.finish(scene)
            consumers, compared = [], []
            for number in range(1, runs + 1):
                consumers.append(_measured(scene, _consumers(scene, jars)))
                compared.append(_measured(scene, [_command(scene)]))
                say(
                    f"run {number} of {runs}: {consumers[-1].seconds:.1f} s, and {compared[-1].seconds:.1f} s to verify"
                )
        finally:
            anabranch.clear(scene)
            remove(source, _TOPIC)
    return VerifyResult(load, tuple(consumers), tuple(compared), load_before)


def _command(scene: Scene) -> list[str]:
    return [*_VERIFY, str(scene.folder / "topology.yaml"), "--state-dir", str(scene.folder / "verify")]


def _consumers(scene: Scene, jars: Path) -> list[list[str]]:
    java = [str(java_executable()), "-Dlog4j2.level=error", "-cp", class_path(jars), _CONSUMER]
    whole = ["--from-beginning", "--max-messages", str(scene.load.records)]
    return [
        [*java, "--bootstrap-server", cluster.bootstrap, "--topic", topic, *whole]
        for cluster, topic in ((scene.source, scene.topic), (scene.target, scene.remote))
    ]


def _measured(scene: Scene, commands: Sequence[Sequence[str]]) -> Measured:
    """Run commands side by side to their ends.

    Raises:
        EnvironmentFault: AB350, one does not end with 0, or not in time.
    """
    began = time.monotonic()
    processes = [start_child(command, Path(os.devnull)) for command in commands]
    trees = [ProcessTree(process.pid) for process in processes]
    cpu = [0.0] * len(trees)
    while any(process.poll() is None for process in processes):
        cpu = [max(before, tree.cpu_seconds()) for before, tree in zip(cpu, trees, strict=True)]
        if time.monotonic() - began > _PATIENCE:
            _kill(processes)
            raise fault(scene, f"{commands[0][-1]} is not done after {_PATIENCE:g} s")
        time.sleep(_LOOK)
    seconds = time.monotonic() - began
    for process, command in zip(processes, commands, strict=True):
        if process.returncode:
            raise fault(scene, f"ended with {process.returncode}: {' '.join(command)}")
    return Measured(seconds, sum(cpu))


def _kill(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
        process.wait()


def verify_report(found: VerifyResult, machine: Mapping[str, str], date: str) -> str:
    """Return the report.

    Args:
        found: what was measured.
        machine: facts about the machine, by name.
        date: when it was, as it shall be written.
    """
    load = found.load
    size = load.records * load.size
    rows = [
        [f"{number}", name, f"{one.seconds:.1f}", f"{one.cpu:.1f}", f"{2 * size / one.seconds / 1e6:,.0f}"]
        for number, pair in enumerate(zip(found.consumers, found.verify, strict=True), 1)
        for name, one in zip(("two console consumers", "`verify`"), pair, strict=True)
    ]
    return "\n".join(
        [
            f"# Verify of {date}\n",
            f"{load.records:,} records of {load.size} bytes in {load.partitions} partitions, codec {load.codec}, and "
            "the copy that Anabranch made of them.\n",
            machine_lines(machine) + f"- load average {found.load_before:.2f} before the start\n",
            table(["run", "", "seconds", "CPU s", "MB/s of both sides"], rows),
            bars_table([Bar("seconds of the consumers / of `verify`, medians", found.ratio, _LEAST_RATIO)]),
            "## How\n",
            _NOTES,
        ]
    )
