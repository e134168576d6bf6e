"""Records that are not ours are named once, a few of each topic; words of others in a run's name cost it nothing."""

from __future__ import annotations

import threading
import tracemalloc
import warnings
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import pytest

from reconciler.model.base.errors import Problem
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.status import TaskStatus
from reconciler.replicator.driver.driver import Driver
from reconciler.replicator.driver.watchdog import Watchdog
from reconciler.report.status.summary import summarise
from reconciler.state.journals import strangers

WHERE = "cluster west (b:9092), topic anabranch-owned.internal, partition 0"
NOW = 1_700_000_000.0


@pytest.fixture
def named() -> Iterator[list[Problem]]:
    found: list[Problem] = []
    strangers.listen(found.append)
    yield found
    strangers.listen(strangers._warn)


def test_a_record_is_named_once(named: list[Problem]) -> None:
    for _ in range(3):
        strangers.note(WHERE, 7, "name is missing")
    (problem,) = named
    assert (problem.code, problem.where) == ("AB324", f"{WHERE}, offset 7")
    assert problem.message == "a record is not ours, and is passed over: name is missing"
    strangers.note(WHERE.replace("owned", "status"), 7, "name is missing")
    assert len(named) == 2


def test_of_many_a_few_are_named(named: list[Problem]) -> None:
    def note() -> None:
        for offset in range(1_000):
            strangers.note(WHERE, offset, "not JSON")

    threads = [threading.Thread(target=note) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [problem.where for problem in named[:-1]] == [f"{WHERE}, offset {n}" for n in range(strangers.MOST)]
    assert (named[-1].where, named[-1].message.startswith("further records are not ours")) == (WHERE, True)


def test_each_command_names_them_anew(named: list[Problem]) -> None:
    strangers.note(WHERE, 7, "x")
    strangers.listen(named.append)
    strangers.note(WHERE, 7, "x")
    assert len(named) == 2


def test_where_nothing_listens_they_are_warnings() -> None:
    strangers.listen(strangers._warn)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        strangers.note(WHERE, 7, "not JSON")
        strangers.note(WHERE, 7, "not JSON")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        strangers.note(WHERE, 8, "not JSON")
    (one,) = caught
    assert (one.category, f"{WHERE}, offset 7" in str(one.message)) == (strangers.StrangeRecord, True)


FLOW = Flow("f", "east", "west", Selection((".*",)), tasks=3)
WORD = TaskStatus("f", "east", "west", "run", 0, 3, NOW, False, None, 0, 0, 0.0, 0.0, ())


def test_words_of_others_are_not_a_runs_own() -> None:
    drive = Driver.__new__(Driver)
    drive._run, drive._specs = "run", (SimpleNamespace(flow=FLOW),)  # type: ignore[assignment]
    process = replace(WORD, task=-1, tasks=0)
    own = [WORD, replace(WORD, task=2), replace(WORD, tasks=1), process]
    others = [
        replace(WORD, tasks=1_000),
        replace(WORD, task=999, tasks=1_000),
        replace(WORD, task=3),
        replace(WORD, flow="another"),
        replace(WORD, run="another"),
    ]
    assert drive._own([*others, *own]) == own


def test_what_a_word_says_of_tasks_allocates_nothing() -> None:
    """A thousand words of a thousand tasks each: only words are counted."""
    forged = [replace(WORD, run=f"run-{number}", tasks=1_000) for number in range(1_000)]
    tracemalloc.start()
    (told,) = summarise([FLOW], forged, NOW)
    Watchdog().silent([WORD], NOW)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (told.unheard_tasks, peak < 10_000_000) == (999_000, True)
