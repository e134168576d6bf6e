"""A call that threads share: how often it is made, and what each of them gets of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from reconciler.state.journals.shared_call import SharedCall
from tests.support.waiting import eventually

SECONDS = 60.0


class Work:
    """Something that takes until it is let go, and counts."""

    def __init__(self) -> None:
        self.begun = 0
        self.at_once = self.most_at_once = 0
        self.goes_on = threading.Event()
        self.fails: Exception | None = None

    def __call__(self) -> None:
        self.begun += 1
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        assert self.goes_on.wait(SECONDS)
        self.at_once -= 1
        if self.fails is not None:
            raise self.fails


def together(shared: SharedCall, work: Work, count: int, pool: ThreadPoolExecutor) -> list[Future[None]]:
    """Return a call that is under way and others that came while it was."""
    first = pool.submit(shared)
    eventually("the first call is under way", lambda: work.begun == 1)
    others = [pool.submit(shared) for _ in range(count)]
    eventually("the others wait", lambda: shared._asked == count + 1)
    return [first, *others]


def test_those_that_come_during_a_call_share_the_next_one() -> None:
    work = Work()
    shared = SharedCall(work)
    with ThreadPoolExecutor(8) as pool:
        calls = together(shared, work, 5, pool)
        work.goes_on.set()
        for call in calls:
            call.result(SECONDS)
    # What the first one has read may be older than what the others want to know.
    assert (work.begun, work.most_at_once) == (2, 1)
    shared()
    assert work.begun == 3, "what was read before is not enough for a later call"


def test_a_failure_is_that_of_all_that_shared_the_call_and_of_no_later_one() -> None:
    work = Work()
    shared = SharedCall(work)
    with ThreadPoolExecutor(8) as pool:
        calls = together(shared, work, 3, pool)
        work.fails = ValueError("away")
        work.goes_on.set()
        for call in calls:
            with pytest.raises(ValueError, match="away"):
                call.result(SECONDS)
    assert work.begun == 2
    work.fails = None
    shared()


@pytest.mark.parametrize("threads", [2, 8])
def test_each_call_sees_what_was_written_before_it(threads: int) -> None:
    written, seen = [0], [0]

    def read() -> None:
        seen[0] = written[0]

    shared, lock = SharedCall(read), threading.Lock()

    def look(_: int) -> bool:
        with lock:
            written[0] += 1
            mine = written[0]
        shared()
        return seen[0] >= mine

    with ThreadPoolExecutor(threads) as pool:
        assert all(pool.map(look, range(2_000)))


def test_a_call_is_a_function_without_result() -> None:
    made: Callable[[], None] = SharedCall(lambda: None)
    made()
