"""Following a process from its start to the last record, with a small program in a competitor's place."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.competitors.base import Scene
from bench.instruments.segments import LogFacts, TopicLog
from bench.instruments.watch import Watch
from bench.workload.load import Load
from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import EnvironmentFault

ORIGINAL = LogFacts(batches=8, records=80, bytes=8_000)
# Appends batches of ten records to the remote topic's log, as a broker would for a competitor; if it is told to wait,
# then with the first until that has been seen.
PROGRAM = """
import pathlib, sys, time
from reconciler.records.batch import HEADER
folder = pathlib.Path("remote.orders-0"); folder.mkdir()
with (folder / "00000000000000000000.log").open("ab", buffering=0) as log:
    for _ in range(int(sys.argv[1])):
        log.write(HEADER.pack(0, HEADER.size - 12 + 9, 0, 2, 0, 0, 9, 0, 0, -1, 0, 0, 10) + bytes(9))
        while int(sys.argv[2]) and not pathlib.Path("seen").exists():
            time.sleep(0.01)
print("this was all", flush=True)
sys.stdin.read(int(sys.argv[3]))
"""


class SeenLog(TopicLog):
    """Lets the program go on once a first batch was seen; the look after that finds what came later."""

    _seen = False

    def advance(self) -> LogFacts:
        if self._seen:
            (self._folders[0].parent / "seen").touch()
        facts = super().advance()
        self._seen = facts.records > 0
        return facts


StartWatch = Callable[..., Watch]


@pytest.fixture
def looks() -> list[int]:
    """The bytes of the copy, look by look."""
    return []


@pytest.fixture
def start(tmp_path: Path, looks: list[int]) -> Iterator[StartWatch]:
    """Start the program with a number of batches, whether it waits with the first, and whether it stays in the end."""
    started: list[subprocess.Popen[bytes]] = []
    source, target = (EmbeddedCluster(name, folder=tmp_path / name) for name in ("source", "target"))
    scene = Scene(source, target, "remote", "orders", Load(80), tmp_path)

    def run(batches: int, waits: bool, stays: bool) -> Watch:
        command = [sys.executable, "-c", PROGRAM, str(batches), str(int(waits)), str(int(stays))]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
        with scene.log.open("wb") as output:
            process = subprocess.Popen(
                command, cwd=tmp_path, env=environment, stdin=subprocess.PIPE, stdout=output, stderr=output
            )
        started.append(process)
        return Watch(scene, process, [os.getpid()], ORIGINAL, SeenLog(tmp_path, scene.remote, 1), looks.append)

    yield run
    for process in started:
        process.communicate()


def test_what_is_measured_begins_with_the_first_records_and_ends_with_the_last(
    start: StartWatch, looks: list[int]
) -> None:
    one = start(8, waits=True, stays=True).measure()
    assert looks == sorted(looks)
    assert 0 < min(filter(None, looks)) < looks[-1] == one.copy.bytes
    assert one.copy.records == 80
    # The first look that sees anything sees one batch, which is not part of what is measured.
    assert one.records == 70
    assert one.bytes == one.records * 100
    assert one.seconds > 0
    assert one.startup > 0
    assert one.startup_cpu > 0
    assert one.memory.driver > 0


def test_a_competitor_that_ends_early_is_named_with_its_last_words(start: StartWatch) -> None:
    watch = start(3, waits=False, stays=False)
    with pytest.raises(EnvironmentFault) as caught:
        watch.measure()
    text = str(caught.value)
    assert text.startswith("remote: ended with exit code 0, with 30 of 80 records replicated")
    assert "this was all" in text
    assert "[AB350]" in text


def test_a_topic_that_is_copied_at_once_cannot_be_measured(start: StartWatch, tmp_path: Path) -> None:
    watch = start(8, waits=False, stays=True)
    log = tmp_path / "output.log"
    while "this was all" not in log.read_text():
        pass
    with pytest.raises(EnvironmentFault, match="80 records came at once"):
        watch.measure()
