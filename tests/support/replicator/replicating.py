"""Run `anabranch replicate` as a process of its own, and find the processes behind it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from reconciler.declare import load
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState, TaskStatus
from reconciler.replicator.driver import discovery
from reconciler.replicator.driver.catch_up import CatchUp
from reconciler.state.status import StatusReader
from tests.support.commands.trees import below

COMMAND = (sys.executable, "-m", "reconciler.cli.main")


class Replicator:
    """One process of `anabranch replicate`, its output in a file."""

    def __init__(self, file: Path, folder: Path, *options: str) -> None:
        topology = load((file,)).name
        self._begin(topology, folder, "replicate", str(file), "--state-dir", str(folder / "state"), *options)

    def _begin(self, topology: str, folder: Path, *arguments: str) -> None:
        """Start a command that copies a topology."""
        folder.mkdir(parents=True, exist_ok=True)
        self.topology = topology
        self.log = folder / f"{arguments[0]}-{time.monotonic_ns()}.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [*COMMAND, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def wait(self, seconds: float) -> int:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            message = f"still running after {seconds} s; it said:\n{self.said()[-3000:]}"
            raise AssertionError(message) from None

    def terminate(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def interrupt(self) -> None:
        """Do what Ctrl-C does: the signal goes to the whole process group."""
        os.killpg(self.pid, signal.SIGINT)

    def kill_driver(self) -> None:
        self._process.kill()
        self._process.wait()

    def jvm(self) -> list[psutil.Process]:
        return below(self.pid, lambda p: p.name() == "java" and _lives(p))

    def kill_jvm(self) -> None:
        (java,) = self.jvm()
        java.kill()

    def worker(self) -> psutil.Process:
        """Return the Python worker that has worked most."""
        return max(self.workers(), key=lambda p: sum(p.cpu_times()[:2]))

    def workers(self) -> list[psutil.Process]:
        """Return all Python workers, not the daemon that makes them."""
        # Java has the module's name in its command line, too, within an option.
        daemons = below(self.pid, lambda p: "reconciler.replicator.spark.daemon" in p.cmdline() and _lives(p))
        numbers = {daemon.pid for daemon in daemons}
        return below(self.pid, lambda p: p.pid in numbers and p.ppid() in numbers)

    def kill_worker(self) -> None:
        self.worker().kill()

    def end(self) -> None:
        """End it and all its processes, whatever state they are in."""
        doomed = [*below(self.pid, _lives), psutil.Process(self.pid)] if self.is_running else []
        for process in doomed:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        self._process.wait()


def _lives(process: psutil.Process) -> bool:
    return bool(process.status() != psutil.STATUS_ZOMBIE)


def wait_until_copying(target: Cluster, replicator: Replicator, since: float, seconds: float = 400) -> list[TaskStatus]:
    """Wait until a task that has spoken after `since` copies: all its partitions run and it has copied something."""
    return _wait(
        target,
        replicator,
        since,
        lambda mine: _states(mine) == {PartitionState.RUNNING} and any(s.records for s in mine),
        seconds,
    )


def wait_until_running(target: Cluster, replicator: Replicator, seconds: float = 400) -> list[TaskStatus]:
    """Wait until a run has all partitions of its flow, and all of them run."""
    return _wait(target, replicator, 0.0, lambda mine: _states(mine) == {PartitionState.RUNNING}, seconds)


def wait_until_some_copied(target: Cluster, replicator: Replicator, seconds: float = 400) -> list[TaskStatus]:
    """Wait until a run has copied something, whatever else it waits for."""
    return _wait(target, replicator, 0.0, lambda mine: any(status.records for status in mine), seconds)


def wait_until_sharing(target: Cluster, replicator: Replicator, seconds: float = 400) -> list[TaskStatus]:
    """Wait until a run copies half of its flow's partitions, and says of the others that another run does."""

    def has_half(mine: list[TaskStatus]) -> bool:
        partitions = [partition for status in mine for partition in status.partitions]
        waiting = [one for one in partitions if one.reason is not None and one.reason.code == "AB223"]
        running = [one for one in partitions if one.state is PartitionState.RUNNING]
        return 2 * len(waiting) == 2 * len(running) == len(partitions)

    return _wait(target, replicator, 0.0, has_half, seconds)


def wait_until_caught_up(target: Cluster, replicator: Replicator, file: Path, seconds: float = 400) -> None:
    """Wait until a process has copied all that the sources of its file's flows have now."""
    topology, goals = load((file,)), CatchUp()
    for flow in topology.flows:
        spec = FlowSpec.compile(topology, flow, "unused")
        goals.add(spec, discovery.matching(spec))
    _wait(target, replicator, 0.0, lambda mine: goals.progress(mine).missing == 0, seconds)


def _states(statuses: list[TaskStatus]) -> set[PartitionState]:
    return {partition.state for status in statuses for partition in status.partitions}


def _wait(
    target: Cluster, replicator: Replicator, since: float, until: Callable[[list[TaskStatus]], bool], seconds: float
) -> list[TaskStatus]:
    reader = StatusReader(target, replicator.topology)
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline:
            fresh = [s for s in reader.current() if s.time > since and s.is_live(time.time())]
            mine = [s for s in fresh if s.run.endswith(f"-{replicator.pid}")]
            if mine and until(mine):
                return mine
            assert replicator.is_running, f"it ended; it said:\n{replicator.said()[-3000:]}"
            time.sleep(0.1)
    finally:
        reader.close()
    message = f"it did not come to that within {seconds} s; it said:\n{replicator.said()[-3000:]}"
    raise AssertionError(message)
