"""Turns: how many tasks begin at the same time, and that none waits for ever."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from reconciler.replicator.task.turns import Turns
from tests.support.waiting import eventually

LONG = 600.0


def never() -> bool:
    return False


def test_so_many_begin_at_the_same_time_and_the_others_follow_when_turns_end() -> None:
    turns, began = Turns(2, LONG), threading.Semaphore(0)
    at_once, most, lock = 0, 0, threading.Lock()

    def begin(_: int) -> None:
        nonlocal at_once, most
        turn = turns.take(never)
        with lock:
            at_once += 1
            most = max(most, at_once)
        began.release()
        with lock:
            at_once -= 1
        turn.over()
        turn.over()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(begin, range(40)))
    assert most <= 2
    assert all(began.acquire(timeout=LONG) for _ in range(40))


def test_a_turn_that_takes_too_long_lets_the_next_one_begin() -> None:
    turns = Turns(1, 0.3)
    first = turns.take(never)
    second = turns.take(never)
    assert second.until > first.until
    # The end of a turn that counts no more gives no place to another one.
    first.over()
    third: list[object] = []
    thread = threading.Thread(target=lambda: third.append(turns.take(never)))
    thread.start()
    second.over()
    thread.join(LONG)
    assert third


def test_a_task_that_is_to_end_waits_for_no_turn() -> None:
    turns, given_up = Turns(1, LONG), threading.Event()
    turns.take(never)
    taken: list[object] = []
    thread = threading.Thread(target=lambda: taken.append(turns.take(given_up.is_set)))
    thread.start()
    given_up.set()
    eventually("it waits no more", lambda: taken)
    thread.join(LONG)
