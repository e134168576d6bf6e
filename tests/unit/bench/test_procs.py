"""CPU seconds and memory of process trees, on real processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from bench.instruments.procs import ProcessTree, machine_busy_seconds, own_seconds

BURN = "import time\nwhile time.process_time() < 0.5: pass\n"
MIB = 2**20

Start = Callable[[str], subprocess.Popen[str]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start Python with some code that prints `ready` and then waits for its input to end."""
    started: list[subprocess.Popen[str]] = []

    def run(code: str) -> subprocess.Popen[str]:
        script = code + "\nimport sys; print('ready', flush=True); sys.stdin.read()"
        process = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield run
    for process in started:
        process.communicate()


def test_time_of_a_child_that_has_ended_is_kept(start: Start) -> None:
    process = start(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}])")
    assert ProcessTree(process.pid).cpu_seconds() >= 0.4


def test_time_of_a_living_child_is_counted(start: Start) -> None:
    child = BURN + "print('done', flush=True); import sys; sys.stdin.read()"
    process = start(
        f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE)\n"
        "child.stdout.readline()"
    )
    assert ProcessTree(process.pid).cpu_seconds() >= 0.4


def test_peaks_are_kept_by_role(start: Start) -> None:
    child = f"b = b'x' * {64 * MIB}; del b; print('done', flush=True); import sys; sys.stdin.read()"
    process = start(
        f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {child!r}], stdout=subprocess.PIPE)\n"
        "child.stdout.readline()"
    )
    memory = ProcessTree(process.pid).memory()
    assert memory.worker > 64 * MIB
    assert 0 < memory.driver < 64 * MIB
    assert memory.jvm == 0
    assert 0 < memory.together < memory.worker + memory.driver


def test_a_tree_that_has_ended_keeps_its_peaks(start: Start) -> None:
    process = start("")
    tree = ProcessTree(process.pid)
    tree.note_memory()
    process.communicate()
    assert tree.memory().driver > 0
    assert tree.memory().together == 0
    assert tree.cpu_seconds() == 0


def test_the_machine_is_at_least_as_busy_as_this_process() -> None:
    machine, own = machine_busy_seconds(), own_seconds()
    while own_seconds() - own < 0.2:
        pass
    # Both clocks tick every 10 ms.
    assert machine_busy_seconds() - machine >= 0.15
