"""Who copies a flow: the words of processes whose clocks nobody knows, judged by the clock of who listens."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.recorded.declaration import DeclarationHistory
from reconciler.model.tasks.status import TaskStatus
from reconciler.state import running
from reconciler.state.running import LiveTasks

FLOW = Flow("over", "east", "west", Selection(("orders",)))
ALONE = replace(TaskStatus.of_process(FLOW, "one", ""), task=0, tasks=1)


class Said:
    """What the status topic holds, and what the time is."""

    def __init__(self) -> None:
        self.words: list[TaskStatus] = []
        self.now = 1000.0

    def current(self, _patience: float) -> list[TaskStatus]:
        return self.words

    def close(self) -> None: ...


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Said:
    said = Said()
    monkeypatch.setattr(running, "StatusReader", lambda _cluster, _topology: said)
    monkeypatch.setattr(running, "_history", lambda _cluster, _topology: DeclarationHistory(()))
    monkeypatch.setattr(time, "monotonic", lambda: said.now)
    return said


def words() -> LiveTasks:
    return LiveTasks(Cluster("west", ("localhost:1",)), "topology", "over")


@pytest.mark.parametrize("clock", [-3600.0, 0.0, 2e9, 9e9])
def test_who_goes_on_speaking_is_there_whatever_their_clock_says(said: Said, clock: float) -> None:
    heard = words()
    for second in range(20):
        said.words = [replace(ALONE, time=clock + second)]
        assert heard.current() == said.words
        said.now += 1.0
    said.now += 4.5
    assert heard.current() == [], "nothing new has come for more than five seconds"


def test_one_word_counts_for_some_seconds_from_when_it_was_listened_to(said: Said) -> None:
    said.words = [replace(ALONE, time=17.0)]
    heard = words()
    assert heard.current() == said.words
    said.now += 4.9
    assert heard.current() == said.words
    said.now += 0.2
    assert heard.current() == []


def test_last_words_other_flows_and_who_waits_count_for_nothing(said: Said) -> None:
    waits = TaskStatus.of_process(FLOW, "two", "", waiting="until its declaration is in force")
    starts = replace(waits, run="three", starting=True)
    said.words = [replace(ALONE, stopped=True), replace(ALONE, flow="another"), waits, starts]
    assert words().current() == [starts]


def test_words_of_another_topology_count_for_nothing(said: Said) -> None:
    ours = replace(ALONE, topology="topology")
    said.words = [replace(ALONE, topology="another", run="theirs"), ours, replace(ALONE, run="older")]
    assert words().current() == [ours, replace(ALONE, run="older")]
