"""Who looks after tasks: whom it replaces or leaves alone, and what it says meanwhile. Spark and topics made up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, cast

import pytest

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import TaskStatus
from reconciler.replicator.driver import supervisor
from reconciler.replicator.spark.session import ReplicationSession

WEST = Cluster("west", ("w:9092",))
FLOWS = ("a", "b")


class Topic:
    """The status topic: the newest word by flow and task; what the driver says gets there unless the way is cut."""

    def __init__(self) -> None:
        self.words: dict[tuple[str, int], TaskStatus] = {}
        self.is_cut = False
        self.flushed: list[float] = []

    def post(self, word: TaskStatus) -> None:
        if not self.is_cut:
            self.words[word.flow, word.task] = word

    def withdraw(self, word: TaskStatus) -> None:
        self.words.pop((word.flow, word.task), None)

    def flush(self, seconds: float) -> None:
        self.flushed.append(seconds)


class Spark:
    """A session whose queries never end by themselves."""

    def __init__(self) -> None:
        self.begun = Counter(FLOWS)
        self.failing: dict[str, str] = {}
        self.lacking: str | None = None
        self.replaced: list[tuple[str, str]] = []

    def check(self, now: float, reported: Collection[str]) -> dict[str, str]:
        return self.failing

    def lacking_slots(self) -> str | None:
        return self.lacking

    def replace(self, flow: str, why: str, now: float) -> None:
        self.replaced.append((flow, why))
        self.begun[flow] += 1


class Scene:
    """Two flows of two tasks each; time goes on in looks of a fifth of a second."""

    def __init__(self) -> None:
        self.topic, self.spark, self.now = Topic(), Spark(), 1_000.0
        self.specs = [
            FlowSpec("t", "run", Flow(name, "east", "west", Selection(("x",)), tasks=2), WEST, WEST, ())
            for name in FLOWS
        ]
        self.care = supervisor.Supervisor(self.specs, cast("ReplicationSession", self.spark))
        self.failing: dict[str, str] = {}

    def go_on(self, seconds: float, *silent: tuple[str, int]) -> None:
        """Let some time pass in which all tasks speak every look, but the silent ones."""
        end = self.now + seconds
        while self.now < end:
            self.now += 0.2
            for spec in self.specs:
                for task in (0, 1):
                    if (spec.flow.name, task) not in silent and not self.topic.is_cut:
                        whole = TaskStatus.of_process(spec.flow, "run", "")
                        self.topic.post(replace(whole, task=task, tasks=2, time=self.now))
            self.failing = dict(self.care.look(list(self.topic.words.values()), self.now))

    def said(self, flow: str) -> TaskStatus | None:
        return self.topic.words.get((flow, -1))


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene()

    def of_process(spec_flow: Flow, *arguments: Any) -> TaskStatus:
        return replace(whole(spec_flow, *arguments), time=made.now)

    whole: Callable[..., TaskStatus] = TaskStatus.of_process
    monkeypatch.setattr(TaskStatus, "of_process", of_process)
    monkeypatch.setattr(supervisor, "StatusWriter", lambda _cluster, topology: made.topic)
    made.go_on(10)
    assert made.spark.replaced == []
    return made


def test_a_task_that_stands_still_is_replaced_once(scene: Scene) -> None:
    scene.go_on(31, ("a", 0), ("a", 1))
    said = scene.said("a")
    assert said is not None
    assert (said.waiting, said.failing) == ("a status of its task 0, which publishes none any more", None)
    assert (scene.spark.replaced, scene.said("b")) == ([], None)
    scene.go_on(16, ("a", 0), ("a", 1))
    ((flow, why),) = scene.spark.replaced
    assert flow == "a"
    assert why.startswith("its task 0 published no status for 4")
    assert scene.said("a") is None
    # It gets as long as a start takes, and then is looked at anew.
    scene.go_on(80, ("a", 0))
    assert len(scene.spark.replaced) == 1
    scene.go_on(40, ("a", 0))
    assert len(scene.spark.replaced) == 2


def test_whoever_speaks_again_in_time_is_left_alone(scene: Scene) -> None:
    scene.go_on(40, ("a", 0))
    assert scene.said("a") is not None
    scene.go_on(100)
    assert (scene.spark.replaced, scene.said("a")) == ([], None)


def test_nobody_is_ended_while_no_word_arrives(scene: Scene) -> None:
    scene.topic.is_cut = True
    scene.go_on(300)
    scene.topic.is_cut = False
    # Connections come back one after the other.
    scene.go_on(14, ("a", 0))
    scene.go_on(100)
    assert scene.spark.replaced == []


def test_an_old_word_of_the_driver_proves_nothing(scene: Scene) -> None:
    scene.go_on(35, ("a", 0))
    old = scene.said("a")
    assert old is not None
    scene.go_on(5)
    scene.topic.words["a", -1] = old
    scene.topic.is_cut = True
    scene.go_on(200)
    assert scene.spark.replaced == []


def test_tasks_without_slots_are_told_and_nobody_is_ended(scene: Scene) -> None:
    scene.spark.lacking = "spark://m:7077 gives 3 slots, and there are 4 tasks, all at once"
    scene.go_on(100, ("b", 1))
    assert scene.spark.replaced == []
    assert scene.failing == {"b": scene.spark.lacking}
    said = scene.said("b")
    assert said is not None
    assert said.failing == scene.spark.lacking


def test_a_flow_that_fails_is_told_until_it_is_well(scene: Scene) -> None:
    scene.spark.failing = {"a": "no such module"}
    scene.go_on(200, ("a", 0), ("a", 1))
    assert (scene.failing, scene.spark.replaced) == ({"a": "no such module"}, [])
    said = scene.said("a")
    assert said is not None
    assert said.failing == "no such module"
    assert scene.now - said.time < 2
    scene.spark.failing = {}
    scene.go_on(5)
    assert scene.said("a") is None
    scene.spark.failing = {"b": "x"}
    scene.go_on(5)
    scene.care.close()
    assert (scene.said("a"), scene.said("b")) == (None, None)


def test_what_was_said_of_many_flows_is_taken_back_in_one_wait(scene: Scene) -> None:
    scene.spark.failing = {"a": "x", "b": "x"}
    scene.go_on(5)
    scene.care.close()
    assert (scene.said("a"), scene.said("b")) == (None, None)
    (seconds,) = scene.topic.flushed
    assert seconds <= 2.0


def test_a_secret_that_is_gone_ends_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_word: TaskStatus) -> None:
        raise EnvironmentFault(Problem("AB304", "cluster west", "no secret", "set it"))

    monkeypatch.setattr(scene.topic, "post", refuses)
    scene.spark.failing = {"a": "x"}
    assert scene.care.look([], scene.now + 1) == {"a": "x"}
