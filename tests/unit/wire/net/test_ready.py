"""Asking again while a coordinator is not ready: until it is, for no other error, and not for ever."""

from __future__ import annotations

import pytest

from reconciler.wire import BrokerError, Loop, when_ready

LOADING, ELSEWHERE, REFUSED = 14, 16, 30
NOT_YET = frozenset({LOADING, ELSEWHERE})


class Coordinator:
    """Answers what it is told, one after the other; the last of it from then on."""

    def __init__(self, *answers: int) -> None:
        self.answers = answers
        self.asked = 0

    async def ask(self) -> str:
        code = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        if code:
            raise BrokerError(code)
        return "ready"


def ask(coordinator: Coordinator, seconds: float) -> str:
    loop, found = Loop(), []

    async def work() -> None:
        found.append(await when_ready(loop, coordinator.ask, NOT_YET, seconds))

    try:
        loop.run(work)
    finally:
        loop.close()
    return found[0]


def test_it_is_asked_until_it_is_ready() -> None:
    coordinator = Coordinator(LOADING, ELSEWHERE, LOADING, 0)
    assert (ask(coordinator, 60.0), coordinator.asked) == ("ready", 4)


@pytest.mark.parametrize(
    ("answers", "seconds", "code", "asked"),
    [((LOADING, REFUSED), 60.0, REFUSED, 2), ((LOADING,), -1.0, LOADING, 1), ((0,), -1.0, 0, 1)],
)
def test_other_errors_and_lost_patience_end_it(answers: tuple[int, ...], seconds: float, code: int, asked: int) -> None:
    coordinator = Coordinator(*answers)
    if code:
        with pytest.raises(BrokerError) as caught:
            ask(coordinator, seconds)
        assert caught.value.code == code
    else:
        assert ask(coordinator, seconds) == "ready"
    assert coordinator.asked == asked


def test_it_is_asked_again_as_long_as_patience_lasts() -> None:
    coordinator = Coordinator(ELSEWHERE)
    with pytest.raises(BrokerError):
        ask(coordinator, 1.0)
    assert coordinator.asked >= 2
