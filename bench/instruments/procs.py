"""CPU seconds and memory of a process and of all that it starts, read from /proc through psutil.

`watch` samples a competitor with it, and the brokers. It must not start or end processes.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class Memory:
    """Peaks of resident memory in bytes, 0 where there is no such process.

    Attributes:
        jvm: the largest of the Java virtual machines.
        driver: the process that was started, when it is not a virtual machine itself.
        worker: the largest of all other processes.
        together: all processes at the end, each page counted once; not a peak, since it is too dear to look often.
    """

    jvm: int
    driver: int
    worker: int
    together: int


class ProcessTree:
    """A process and its descendants.

    Args:
        pid: the process at the root.
    """

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._peaks: dict[int, tuple[str, int]] = {}

    def cpu_seconds(self) -> float:
        """Return user and system time of all processes that live, and of those that ended and were waited for.

        The kernel adds an ended child's time to its parent when the parent waits for it, so nothing is lost when a
        worker dies, and nothing is counted twice.
        """
        total = 0.0
        for process in self._all():
            try:
                times = process.cpu_times()
            except psutil.NoSuchProcess:
                continue
            total += times.user + times.system + times.children_user + times.children_system
        return total

    def note_memory(self) -> None:
        """Look at the peak of every process; a process that ends between two looks is known by the earlier one."""
        for process in self._all():
            try:
                # The kernel's own high-water mark knows what happened between two looks.
                peak = _kib(f"/proc/{process.pid}/status", "VmHWM")
                self._peaks[process.pid] = (self._role(process), peak)
            except (psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):
                continue

    def resident(self) -> dict[str, int]:
        """Return the bytes that the largest process of each role holds now, without roles that nobody has."""
        largest: dict[str, int] = {}
        for process in self._all():
            try:
                role, size = self._role(process), int(process.memory_info().rss)
            except psutil.NoSuchProcess:
                continue
            largest[role] = max(size, largest.get(role, 0))
        return largest

    def held(self) -> Counter[str]:
        """Return the bytes that all processes of each role hold now, each page counted once."""
        held: Counter[str] = Counter()
        for process in self._all():
            try:
                # Workers are forks that share pages, so that a sum of their resident sizes would count these twice.
                held[self._role(process)] += _kib(f"/proc/{process.pid}/smaps_rollup", "Pss")
            except (psutil.NoSuchProcess, ProcessLookupError, FileNotFoundError):
                continue
        return held

    def memory(self) -> Memory:
        """Return the peaks noted so far, and what all hold now."""
        self.note_memory()
        together = sum(self.held().values())
        jvm, driver, worker = (
            max((peak for known, peak in self._peaks.values() if known == role), default=0)
            for role in ("jvm", "driver", "worker")
        )
        return Memory(jvm, driver, worker, together)

    def _all(self) -> list[psutil.Process]:
        try:
            return [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _role(self, process: psutil.Process) -> str:
        if process.name() == "java":
            return "jvm"
        return "driver" if process.pid == self._root.pid else "worker"


def machine_busy_seconds() -> float:
    """Return the CPU seconds that all processors were busy since the machine started, stolen time included."""
    times = psutil.cpu_times()
    # Guest time is part of user time.
    return float(times.user + times.nice + times.system + times.irq + times.softirq + times.steal)


def own_seconds() -> float:
    """Return this process's own CPU seconds, without its children's."""
    times = psutil.Process().cpu_times()
    return float(times.user + times.system)


def _kib(path: str, name: str) -> int:
    """Return the bytes of a line `<name>: <number> kB`, 0 when there is none (a process that is ending)."""
    found = re.search(rf"^{name}:\s+(\d+) kB$", Path(path).read_text(), re.MULTILINE)
    return int(found.group(1)) * 1024 if found else 0
