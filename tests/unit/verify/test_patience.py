"""Leaders that are away for a moment end nothing: what passes by itself is asked again, and nothing else."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

import pytest

from reconciler.verify import ends, patience
from reconciler.verify.ends import LogEnds
from reconciler.verify.patience import patiently
from reconciler.wire import BrokerError, ConnectionLost, Leader, Loop, NotLetIn, TopicInfo, Wire

NOT_LEADER, NOT_ALLOWED = BrokerError(6), BrokerError(29)
ID = uuid.uuid4()


class Answers:
    """Gives these one after the other: raises what is an error."""

    def __init__(self, *answers: object) -> None:
        self.left = list(answers)

    async def __call__(self) -> object:
        answer = self.left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (patience, ends):
        monkeypatch.setattr(module, "RETRY", 0.001)


def on_a_loop(work: Callable[[Loop], Coroutine[Any, Any, Any]]) -> Any:
    loop, found = Loop(), []

    async def noted() -> None:
        found.append(await work(loop))

    try:
        loop.run(noted)
    finally:
        loop.close()
    return found[0]


def test_what_passes_by_itself_is_asked_again() -> None:
    answers, between = Answers(NOT_LEADER, ConnectionLost("gone"), 7), Answers(None, None)
    assert on_a_loop(lambda loop: patiently(loop, answers, cast("Any", between))) == 7
    assert (answers.left, between.left) == ([], [])


@pytest.mark.parametrize("error", [NOT_ALLOWED, NotLetIn("no")])
def test_what_does_not_pass_is_told_at_once(error: Exception) -> None:
    answers = Answers(error, 7)
    with pytest.raises(type(error)):
        on_a_loop(lambda loop: patiently(loop, answers))
    assert answers.left == [7]


def test_what_lasts_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE", -1.0)
    with pytest.raises(BrokerError, match="NOT_LEADER"):
        on_a_loop(lambda loop: patiently(loop, Answers(NOT_LEADER, 7)))


class FakeWire:
    """One broker that leads two partitions; it is not the leader of the second so often."""

    def __init__(self, away: int) -> None:
        self._away = away

    async def topics(self, names: Sequence[str]) -> dict[str, TopicInfo]:
        return {name: TopicInfo(name, ID, 0, {number: Leader(1, 0, 0) for number in (0, 1)}) for name in names}

    async def offset(self, _node: int, _topic: str, number: int, _timestamp: int) -> int:
        if number == 1 and self._away:
            self._away -= 1
            raise NOT_LEADER
        return 10 + number


@pytest.fixture
def stable(monkeypatch: pytest.MonkeyPatch) -> None:
    async def stable_ends(
        _wire: object, _node: int, places: Sequence[tuple[str, int]], committed: bool = True
    ) -> dict[tuple[str, int], int]:
        return dict.fromkeys(places, 100 if committed else 107)

    monkeypatch.setattr(ends, "stable_ends", stable_ends)


def looked(away: int) -> LogEnds:
    async def look(loop: Loop) -> LogEnds:
        side = LogEnds(loop, cast("Wire", FakeWire(away)))
        await side.look([("orders", 0), ("orders", 1)], (), 5)
        return side

    found = on_a_loop(look)
    assert isinstance(found, LogEnds)
    return found


@pytest.mark.usefixtures("stable")
def test_a_partition_whose_leader_moves_is_asked_for_again() -> None:
    side = looked(5)
    assert (side.first, side.since) == ({("orders", number): 10 + number for number in (0, 1)},) * 2
    assert [side.held("orders", number) for number in (0, 1)] == [7, 7]


@pytest.mark.usefixtures("stable")
def test_a_partition_without_a_leader_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0.01)
    side = looked(2**30)
    assert [side.has_bounds("orders", number) for number in (0, 1)] == [True, False]
