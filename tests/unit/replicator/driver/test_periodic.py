"""Looking after a flow again and again: troubles are told once, and end nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.replicator.driver.periodic import Periodic

SECONDS = 30.0
TROUBLE = EnvironmentFault(Problem("AB310", "cluster east", "does not answer", "start it"))


class Script(Periodic):
    """Looks as often as it has something to do, and then says so."""

    def __init__(self, *looks: Callable[[list[str]], bool]) -> None:
        self.warned: list[str] = []
        self.paused: list[bool] = []
        self.closed = 0
        self.done = threading.Event()
        self.looks = list(looks)
        super().__init__("tests", "east-west", self.warned.append, SECONDS)

    def _look(self, troubles: list[str]) -> bool:
        return self.looks.pop(0)(troubles)

    def _pause(self) -> float:
        self.paused.append(self.has_failed)
        if self.looks:
            return 0.0
        self.done.set()
        return SECONDS

    def _close(self) -> None:
        self.closed += 1


def says(*told: str, looked: bool = True) -> Callable[[list[str]], bool]:
    def look(troubles: list[str]) -> bool:
        troubles += told
        return looked

    return look


def fails(error: Exception) -> Callable[[list[str]], bool]:
    def look(troubles: list[str]) -> bool:
        troubles.append("a")
        raise error

    return look


def test_a_trouble_is_told_when_it_comes_and_when_it_comes_again() -> None:
    script = Script(says("a"), says("a", "b", "b"), says(looked=False), says("a"), says(), says("a"))
    for _ in range(6):
        script.look()
    # Where nobody has looked nothing is over.
    assert script.warned == ["flow east-west: a", "flow east-west: b", "flow east-west: a"]


def test_neither_errors_nor_faults_of_ours_end_it() -> None:
    script = Script(fails(TROUBLE), fails(TROUBLE), fails(KeyError("x")), says("b"))
    script.start()
    assert script.done.wait(SECONDS)
    script.end()
    assert not script.is_alive()
    assert script.warned == [
        "flow east-west: a",
        f"flow east-west: {TROUBLE.problems[0]}",
        "flow east-west: looking after tests failed: KeyError: 'x'",
        "flow east-west: b",
    ]
    assert (script.paused, script.closed) == ([False, True, True, True, False], 1)


def test_who_is_ended_before_the_first_look_closes_all_the_same() -> None:
    script = Script(says("a"))
    script.over()
    script.start()
    script.end()
    assert (script.warned, script.closed, script.is_alive()) == ([], 1, False)
