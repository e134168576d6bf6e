"""`status` and `lag` on the command line, with a status topic made up: once, again and again, and incomplete."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from rich.console import Console

from reconciler.cli.main import main
from reconciler.cli.optional_values import with_values
from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.declaration import DeclarationHistory
from reconciler.model.recorded.failover import FailedOver
from reconciler.model.tasks.status import Metrics, PartitionState, PartitionStatus, TaskStatus
from reconciler.report.status.live import Screen
from reconciler.report.text.line import Line
from reconciler.state.confluent.faults import unreachable

DECLARED = """\
version: 1
name: both
clusters: {east: {bootstrap: ["e:1"]}, west: {bootstrap: ["w:1"]}}
replication: [{active-active: [east, west]}]
"""
UNREACHABLE = 6
SECOND_LOOK = 2


def said(flow: str, position: int) -> TaskStatus:
    source, target = flow.split("-")
    one = PartitionStatus(
        "orders", 0, f"{source}.orders", PartitionState.RUNNING, position, 50, metrics=Metrics(lag_seconds=0.5)
    )
    return TaskStatus(flow, source, target, "r", 0, 1, time.time(), False, None, 7, 70, 1.0, 2.0, (one,))


class FakeReader:
    """A status topic in which every flow goes on by 10 offsets from look to look."""

    made: ClassVar[list[FakeReader]] = []
    gone: ClassVar[set[str]] = set()
    topology: ClassVar[str] = "both"

    def __init__(self, cluster: Cluster, _topology: str) -> None:
        self._flow = {"west": "east-west", "east": "west-east"}[cluster.alias]
        self._position = 0
        self._cluster = cluster
        self.closed = False
        self.made.append(self)

    def current(self, patience: float) -> list[TaskStatus]:
        assert patience > 0, "else a target that goes away would never be named"
        if self._cluster.alias in self.gone:
            raise unreachable(self._cluster, "gone")
        self._position += 10
        ours = replace(said(self._flow, self._position), topology=self.topology)
        return [ours, replace(said(self._flow, 7), topology="another", run="theirs")]

    def close(self) -> None:
        self.closed = True


class NothingInForce:
    """Declarations of a target where nobody has put any in force."""

    def __init__(self, _cluster: Cluster, _topology: str) -> None: ...

    def current(self) -> DeclarationHistory:
        return DeclarationHistory()

    def close(self) -> None: ...


class NothingFailedOver:
    """Failovers of a target where no flow is failed over."""

    def __init__(self, _cluster: Cluster, _topology: str) -> None: ...

    def current(self) -> dict[str, FailedOver]:
        return {}

    def close(self) -> None: ...


class World:
    """Which clusters do not answer, and how often the command looks before somebody presses Ctrl-C."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.down: set[str] = set()
        self.looks = SECOND_LOOK
        self.slept: list[float] = []
        self.between: Callable[[], None] = lambda: None
        monkeypatch.setattr("reconciler.state.status.StatusReader", FakeReader)
        monkeypatch.setattr("reconciler.state.declarations.Declarations", NothingInForce)
        monkeypatch.setattr("reconciler.state.failovers.Failovers", NothingFailedOver)
        monkeypatch.setattr("reconciler.observe.reach.unreachable_among", self._failures)
        monkeypatch.setattr("reconciler.cli.look.watching.time.sleep", self._sleep)

    def _failures(self, clusters: Sequence[Cluster]) -> dict[str, AnabranchError]:
        return {one.alias: unreachable(one, "gone") for one in clusters if one.alias in self.down}

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.between()
        if len(self.slept) == self.looks:
            raise KeyboardInterrupt


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    FakeReader.made.clear()
    FakeReader.gone.clear()
    return World(monkeypatch)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "both.yaml"
    path.write_text(DECLARED)
    return str(path)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["lag", "a.yaml"], ["lag", "a.yaml"]),
        (["lag", "--watch", "a.yaml"], ["lag", "--watch=2.0", "a.yaml"]),
        (["lag", "a.yaml", "--watch"], ["lag", "a.yaml", "--watch=2.0"]),
        (["lag", "--watch", "0.5", "a.yaml"], ["lag", "--watch", "0.5", "a.yaml"]),
        (["lag", "--watch=7", "a.yaml"], ["lag", "--watch=7", "a.yaml"]),
        (["lag", "--watch", "-"], ["lag", "--watch=2.0", "-"]),
        (["lag", "--watch", "inf"], ["lag", "--watch=2.0", "inf"]),
        (["lag", "--watch", "--topic", "5"], ["lag", "--watch=2.0", "--topic", "5"]),
        (["lag", "--", "--watch"], ["lag", "--", "--watch"]),
    ],
)
def test_the_seconds_of_a_watch_may_be_left_out(given: list[str], told: list[str]) -> None:
    assert with_values(given) == told


@pytest.mark.parametrize("command", ["status", "lag"])
def test_told_once(world: World, file: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, file]) == 0
    assert world.slept == []
    assert "40" in capsys.readouterr().out
    assert all(reader.closed for reader in FakeReader.made)


def test_only_one_flow_and_topic(world: World, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lag", file, "--flow", "west-east", "--topic", "west.orders", "--format", "json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["partitions"]
    assert (one["flow"], one["lag"], one["lagSeconds"]) == ("west-east", 40, 0.5)


def test_a_flow_that_is_not_declared(world: World, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lag", file, "--flow", "north-south"]) == 2
    assert "there are east-west, west-east" in " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.mark.parametrize("topology", ["both", ""])
def test_flows_of_the_same_names_in_another_topology_are_not_told(
    world: World, file: str, topology: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(FakeReader, "topology", topology)
    assert main(["status", file, "--format", "json"]) == 0
    for one in json.loads(capsys.readouterr().out)["flows"]:
        assert (one["lag"], one["tasks"], len(one["runs"])) == (40, 1, 0)


@pytest.mark.parametrize("command", ["status", "lag"])
def test_watched_in_a_pipe(world: World, file: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, file, "--watch", "0.3"]) == 0
    assert world.slept == [0.3, 0.3]
    first, second, rest = capsys.readouterr().out.split("\n\n")
    assert rest == ""
    assert "40" in first
    assert "30" in second
    assert first.splitlines()[0].endswith(" UTC")
    assert all(reader.closed for reader in FakeReader.made)
    assert len(FakeReader.made) == 2, "connections are kept between looks"


@pytest.mark.parametrize("command", ["status", "lag"])
def test_watched_as_json_lines(world: World, file: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, file, "--watch", "--format", "json"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first.keys() == second.keys()
    assert second["time"] >= first["time"]


@pytest.mark.parametrize("command", ["status", "lag"])
def test_what_is_known_is_told_beside_an_unreachable_target(
    world: World, file: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    world.down = {"west"}
    assert main([command, file, "--format", "json"]) == UNREACHABLE
    told = capsys.readouterr()
    value = json.loads(told.out)
    assert value["unreachable"] == ["west"]
    assert "west-east" in told.out
    assert "east-west" not in told.out
    assert "AB310" in told.err


def test_a_watched_target_that_comes_back_is_seen(world: World, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    world.down, world.looks = {"west"}, 3

    def comes_back() -> None:
        if len(world.slept) == SECOND_LOOK:
            world.down = set()

    world.between = comes_back
    assert main(["status", file, "--watch"]) == 0
    told = capsys.readouterr()
    first, second, third, _ = told.out.split("\n\n")
    assert "unreachable: west" in first
    assert "unreachable: west" in second
    assert "unreachable" not in third
    assert "east → west" in third
    assert told.err.count("AB310") == 1, "said when it begins, not at every look"


def test_a_watched_target_that_goes_away_is_named(world: World, file: str, capsys: pytest.CaptureFixture[str]) -> None:
    def goes_away() -> None:
        FakeReader.gone.add("west")
        world.down = {"west"}

    world.between, world.looks = goes_away, 3
    assert main(["status", file, "--watch", "--format", "json"]) == 0
    told = capsys.readouterr()
    looks = [json.loads(line) for line in told.out.splitlines()]
    assert [look["unreachable"] for look in looks] == [[], ["west"], ["west"]]
    assert [one["name"] for one in looks[1]["flows"]] == ["west-east"], "old figures are nobody's state"
    assert told.err.count("AB310") == 1


def test_a_terminal_is_refreshed_in_place() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=20, color_system=None)
    with Screen(console) as screen:
        screen.show([Line("one"), Line("two")])
        screen.show([Line("three"), Line("four")])
    assert isinstance(console.file, io.StringIO)
    written = console.file.getvalue()
    assert "\x1b[1A" in written.partition("two")[2], "the cursor goes back up before the next lines"
