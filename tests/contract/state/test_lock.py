"""The lock of `apply`: one at a time, in the order in which they came; who has died is taken out."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import Locked
from reconciler.model.declared.cluster import Cluster
from reconciler.state import lock as room
from reconciler.state.journals import process
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.lock import Lock
from tests.support.clusters.kafka import declared

LONG = 30.0


@pytest.fixture
def cluster(target_cluster: EmbeddedCluster, topic_name: str) -> Cluster:
    found = declared("west", target_cluster)
    Journal(found, own(topic_name).owned).ensure()
    return found


def claims(cluster: Cluster, topology: str) -> list[str]:
    return [key for key in Journal(cluster, own(topology).owned).read() if key.startswith(f"lock/{topology}/")]


def test_whoever_comes_second_waits(cluster: Cluster, topic_name: str) -> None:
    first, second = Lock(cluster, topic_name), Lock(cluster, topic_name)
    with first:
        first.take(0.0)
        first.check()
        took = threading.Thread(target=second.take, args=(LONG,))
        took.start()
        took.join(1.0)
        assert took.is_alive()
    took.join(LONG)
    assert not took.is_alive()
    second.check()
    second.release()
    assert claims(cluster, topic_name) == []


def test_whoever_does_not_want_to_wait_is_told_who_has_it(cluster: Cluster, topic_name: str) -> None:
    with Lock(cluster, topic_name) as first:
        first.take(0.0)
        with pytest.raises(Locked, match=r"is being changed by \S+@\S+ since 20") as told:
            Lock(cluster, topic_name).take(0.5)
        assert [problem.code for problem in told.value.problems] == ["AB501"]
        assert told.value.exit_code == 5
        # Another topology's is another lock.
        Journal(cluster, own(f"{topic_name}-other").owned).ensure()
        with Lock(cluster, f"{topic_name}-other") as other:
            other.take(0.0)
        assert len([key for key in claims(cluster, topic_name) if not key.endswith("/beat")]) == 1


def test_whoever_has_died_is_taken_out(cluster: Cluster, topic_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "SILENT_SECONDS", 2.0)
    dead = Lock(cluster, topic_name)
    dead.take(0.0)
    # As after a SIGKILL on another machine: no beats, and nothing given back.
    dead._over.set()
    with Lock(cluster, topic_name) as next_one:
        began = time.monotonic()
        next_one.take(LONG)
        assert time.monotonic() - began >= room.SILENT_SECONDS
        next_one.check()
    assert claims(cluster, topic_name) == []


def test_a_process_that_was_killed_here_is_taken_out_at_once(
    cluster: Cluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        gone = process.own_name().rpartition("/")[0] + "/1"
        patch.setattr(process, "own_name", lambda: gone)
        dead = Lock(cluster, topic_name)
        dead.take(0.0)
    with Lock(cluster, topic_name) as next_one:
        # Its beats come on, and yet nobody waits for it.
        next_one.take(0.0)
        next_one.check()
    dead.release()


def test_whoever_stood_still_knows_that_it_may_have_been_taken_out(
    cluster: Cluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "BEAT_SECONDS", 0.2)
    with Lock(cluster, topic_name) as one:
        one.take(0.0)
        one.check()
        stood_still = one._beaten = one._beaten - room.SURE_SECONDS
        deadline = time.monotonic() + LONG
        while one._beaten == stood_still and time.monotonic() < deadline:
            time.sleep(0.05)
        assert one._beaten > stood_still
        # It beats again, and yet somebody may have begun meanwhile.
        with pytest.raises(Locked) as told:
            one.check()
        assert [problem.code for problem in told.value.problems] == ["AB502"]


def test_there_is_one_at_a_time(cluster: Cluster, topic_name: str) -> None:
    inside: list[int] = []
    seen: list[int] = []

    def work(number: int) -> None:
        with Lock(cluster, topic_name) as one:
            one.take(2 * LONG)
            inside.append(number)
            time.sleep(0.2)
            one.check()
            seen.append(len(inside))
            inside.remove(number)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert seen == [1, 1, 1, 1]
    assert claims(cluster, topic_name) == []
