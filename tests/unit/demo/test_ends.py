"""The demo leaves nothing behind, however it is ended; the story is made up."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from reconciler.cli.common import stdout_console
from reconciler.cli.main import main
from reconciler.cli.trying import demo
from reconciler.demo import story
from reconciler.embedded import jars
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.status import PartitionState, PartitionStatus, TaskStatus
from reconciler.report.status.live import LiveView
from tests.support.commands.terminal import Drawn, screen_of


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_what_it_started_ends_with_it(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    ended: list[str] = []

    class Story:
        topology = SimpleNamespace(clusters=("east", "west"))

        def __init__(self, _pattern: str) -> None: ...

        def __enter__(self) -> Story:
            return self

        def __exit__(self, *_: object) -> None:
            ended.append("all")

        def start_clusters(self) -> None:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(story, "Story", Story)
    monkeypatch.setattr(jars, "is_fetched", lambda _what: True)
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGHUP)}
    try:
        assert main(["demo"]) == 128 + number
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    assert ended == ["all"]


def test_fetching_is_told_with_its_bytes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ANABRANCH_CACHE", str(tmp_path))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(demo, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(sys, "stdout", drawn := Drawn())

    def fetch(_what: str) -> Path:
        part = tmp_path / "ivy" / "org.apache.kafka" / "kafka.jar.part"
        part.parent.mkdir(parents=True)
        part.write_bytes(b"x" * 3_000_000)
        deadline = time.monotonic() + 60
        while "3 MB" not in drawn.getvalue():
            assert time.monotonic() < deadline, drawn.getvalue()
            time.sleep(0.01)
        (tmp_path / f"kafka-{jars.version_of()}").mkdir()
        return tmp_path

    monkeypatch.setattr(jars, "fetch_kafka", fetch)
    demo.fetch(stdout_console())
    assert f"fetching Kafka {jars.version_of()} (about 90 MB, once): 3 MB" in drawn.getvalue()
    drawn.truncate(0)
    monkeypatch.setattr(jars, "fetch_kafka", lambda _what: pytest.fail("it is there"))
    demo.fetch(stdout_console())


class Replicator:
    """A process of `replicate` that goes on."""

    returncode = 0

    def poll(self) -> None:
        return None

    def kill(self) -> None: ...

    def wait(self) -> None: ...


def word(flow: str, *, starting: bool, records: int = 0) -> TaskStatus:
    said = TaskStatus(flow, "a", "b", "run", 0, 1, time.time(), False, None, records, 0, 0.0, 0.0, ())
    return replace(said, starting=starting)


@pytest.fixture(name="told")
def fixture_told(monkeypatch: pytest.MonkeyPatch) -> Iterator[story.Story]:
    """A story whose clock goes on by a minute at each look."""
    now = [0.0]
    monkeypatch.setattr(story.time, "monotonic", lambda: now[0])  # type: ignore[attr-defined]
    monkeypatch.setattr(story.time, "sleep", lambda _: now.__setitem__(0, now[0] + 60))  # type: ignore[attr-defined]
    with story.Story("fan-out") as made:
        monkeypatch.setattr(made, "_replicator", Replicator())
        yield made


def test_a_machine_on_which_spark_takes_its_time_is_waited_for(
    told: story.Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    flows = [flow.name for flow in told.topology.flows]
    looks = [[word(flow, starting=True) for flow in flows]] * 30 + [
        [word(flow, starting=False, records=1) for flow in flows]
    ] * 5
    monkeypatch.setattr(told, "_look", lambda _: looks.pop(0))
    told.watch(60, lambda _: None)
    assert len(looks) < 5


def test_what_never_moves_is_told_with_the_load_and_its_logs_are_kept(
    told: story.Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    flows = [flow.name for flow in told.topology.flows]
    monkeypatch.setattr(told, "_look", lambda _: [word(flow, starting=False) for flow in flows])
    told.log.write_text("its last words")
    spark = told.log.parent / "state" / "shop" / "spark.log"
    spark.parent.mkdir(parents=True)
    spark.write_text("what Spark said")
    with pytest.raises(EnvironmentFault, match="nothing moves for 180 s") as caught:
        told.watch(60, lambda _: None)
    (problem,) = caught.value.problems
    assert re.search(r"\(load \d+ on \d+ processors\)", problem.message)
    kept = Path(problem.remedy.rpartition(" ")[2])
    told.__exit__()
    assert {one.name: one.read_text() for one in kept.iterdir()} == {
        "replicate.log": "its last words",
        "state-shop-spark.log": "what Spark said",
    }
    shutil.rmtree(kept)


@pytest.mark.parametrize(("columns", "has_room"), [("80", False), ("120", True)])
def test_the_table_has_each_name_in_one_line(columns: str, has_room: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", drawn := Drawn())
    flow = Flow("us-east-reports", "us-east", "reports", Selection((".*",)))
    rows = tuple(
        PartitionStatus(topic, 0, f"us-east.{topic}", PartitionState.RUNNING, 123_456, 9)
        for topic in ("orders", "payments")
    )
    status = TaskStatus(flow.name, "us-east", "reports", "r", 0, 1, time.time(), False, None, 9, 9, 2022.0, 9e6, rows)
    with LiveView(stdout_console(), [flow]) as view:
        view.show([])
        view.show([status])
    shown = [line for line in screen_of(drawn.getvalue().replace("\n", "\r\n")) if line.strip()]
    assert "starting Spark, about 20 s; 0 s so far" in drawn.getvalue()
    assert shown[1].split()[:4] == ["us-east", "→", "reports", "running"]
    assert [line.split()[:2] for line in shown[2:]] == [["us-east.orders", "123,456"], ["us-east.payments", "123,456"]]
    assert ("behind" in shown[0]) == has_room
    assert max(map(len, shown)) <= int(columns)
