"""Crowd: thousands of mostly idle partitions: how soon all of them run, what they cost, how late a record is.

Called by the command line and the tests. Every partition holds one record before the start. A run is the floor (produce
and consume at the source), then Anabranch: from the start of its process until the record of every partition stands in
its copy; then nothing happens for a while; then a record now and then, to one partition after the other.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.competitors.base import Scene
from bench.competitors.ours import Anabranch, timed
from bench.instruments.procs import ProcessTree
from bench.measures.latency import Setting, Sight, await_copied, watch
from bench.reports.bars import Bar, bars_table
from bench.reports.table import machine_lines, noise_line, table
from bench.workload.load import Load
from bench.workload.topics import await_topic, begin, create, ends, remove
from reconciler.embedded import STEADY_JVM, ClusterOptions, EmbeddedCluster, running

_START_SECONDS = 300.0

_NOTES = """\
Each partition holds one record when Anabranch is started. *Start* is from the start of its process until that record of
every partition stands in its copy, Spark's own start included; the remote topic was made before by `anabranch apply`.
*Plan* and *status* are commands as processes: a plan before the start, a status at the end, while all partitions run.
Then nothing is sent for a while: *idle CPU* is user and system time of all its processes, in CPU seconds a second. Then
records are sent to one partition after the other, and *added* is what their way through the copy takes longer than the
floor's, which is produce and consume at the source cluster in the same run.
"""


@dataclass(frozen=True)
class Crowd:
    """One run.

    Attributes:
        start: seconds until the record of every partition was copied.
        start_cpu: CPU seconds of all processes until then.
        plan: seconds of `plan`, which finds nothing to do, before the start.
        status: seconds of `status` while all partitions run.
        idle: CPU seconds a second of all processes while nothing happens.
        floor: a record now and then, at the source alone.
        sight: the same, through the copy.
    """

    start: float
    start_cpu: float
    plan: float
    status: float
    idle: float
    floor: Sight
    sight: Sight

    @property
    def added(self) -> float:
        """Milliseconds that a copy adds at the median."""
        return self.sight.milliseconds["p50"] - self.floor.milliseconds["p50"]


def crowd(setting: Setting, tasks: int, runs: int, say: Callable[[str], None]) -> list[Crowd]:
    """Measure all runs.

    Args:
        setting: how many partitions and records a second, and for how long nothing and then something happens.
        tasks: Anabranch's.
        runs: how often.
        say: called with a line of progress.

    Raises:
        EnvironmentFault: a cluster or the replicator does not do its part, or loses or doubles a record.
    """
    options, found = ClusterOptions(jvm=STEADY_JVM), []
    for number in range(1, runs + 1):
        with (
            tempfile.TemporaryDirectory(prefix="anabranch-crowd-") as scratch,
            running(EmbeddedCluster("source", options), EmbeddedCluster("target", options)) as (source, target),
        ):
            load = Load(setting.stream.partitions, partitions=setting.stream.partitions)
            say(f"run {number} of {runs}: {setting.stream.partitions:,} partitions")
            found.append(_one(setting, tasks, Scene(source, target, "crowd", "clicks", load, Path(scratch))))
            say(f"  start {found[-1].start:.1f} s, idle {found[-1].idle:.3f}, added {found[-1].added:.1f} ms")
    return found


def _one(setting: Setting, tasks: int, scene: Scene) -> Crowd:
    count = setting.stream.partitions
    floor_scene = Scene(scene.source, scene.target, scene.alias, "floor", scene.load, scene.folder)
    for topic in (floor_scene.topic, scene.topic):
        create(scene.source, topic, count)
        begin(scene.source, [topic], count)
    floor = watch(setting, setting.seconds, floor_scene, None)
    remove(scene.source, floor_scene.topic)
    peer = Anabranch(tasks, ())
    peer.prepare(scene)
    await_topic(scene.target, scene.remote, count, _START_SECONDS)
    plan = timed(scene, "plan", str(scene.topology))
    began = time.monotonic()
    process = peer.start(scene)
    try:
        tree = ProcessTree(process.pid)
        await_copied(scene, process, lambda: sum(ends(scene.target, scene.remote, count)), count, _START_SECONDS)
        start, start_cpu = time.monotonic() - began, tree.cpu_seconds()
        time.sleep(setting.warm_up)
        before, since = tree.cpu_seconds(), time.monotonic()
        time.sleep(setting.seconds)
        idle = (tree.cpu_seconds() - before) / (time.monotonic() - since)
        sight = watch(setting, setting.seconds, scene, tree)
        status = timed(scene, "status", str(scene.topology))
        return Crowd(start, start_cpu, plan, status, idle, floor, sight)
    finally:
        peer.stop()


def crowd_report(setting: Setting, found: list[Crowd], machine: Mapping[str, str], date: str) -> str:
    """Return the report.

    Args:
        setting: how it was measured.
        found: every run.
        machine: facts about the machine, by name.
        date: when it was, as it shall be written.
    """
    stream = setting.stream
    worst = max(one.sight.elsewhere for one in found)
    bars = [
        Bar("start, all partitions copied", median(one.start for one in found), 30, at_least=False, unit=" s"),
        Bar("plan", median(one.plan for one in found), 20, at_least=False, unit=" s"),
        Bar("status", median(one.status for one in found), 2, at_least=False, unit=" s"),
        Bar("idle CPU", median(one.idle for one in found), 0.1, at_least=False),
    ]
    heads = [
        "run",
        "start s",
        "start CPU s",
        "plan s",
        "status s",
        "idle CPU",
        "CPU with records",
        "floor p50 ms",
        "p50 ms",
        "added p50 ms",
    ]
    rows = [
        [
            str(number),
            f"{one.start:.1f}",
            f"{one.start_cpu:.1f}",
            f"{one.plan:.1f}",
            f"{one.status:.1f}",
            f"{one.idle:.3f}",
            f"{one.sight.cpu:.3f}",
            f"{one.floor.milliseconds['p50']:.2f}",
            f"{one.sight.milliseconds['p50']:.2f}",
            f"{one.added:.2f}",
        ]
        for number, one in enumerate(found, 1)
    ]
    parts = [
        f"# Crowd of {date}\n",
        f"{stream.partitions:,} partitions; {setting.seconds:g} s without a record, then {stream.rate:,} records/s "
        f"of {stream.size} bytes in all for {setting.seconds:g} s.\n",
        machine_lines(machine) + noise_line(os.getloadavg()[0], worst),
        table(heads, rows),
        bars_table(bars),
        "## How\n",
        _NOTES,
    ]
    return "\n".join(parts)
