"""What a task says of many partitions: pages that are posted when there is news on them, put together by readers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.declared.cluster import Cluster
from reconciler.model.tasks.status import PartitionState, PartitionStatus, TaskStatus
from reconciler.state import status as status_topic
from reconciler.state.journals.follower import Follower
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from reconciler.state.status import StatusReader, StatusWriter, forget_old
from tests.support.clusters.kafka import declared
from tests.support.waiting import eventually

SECONDS = 300.0


def word(run: str, partitions: int, age: float = 0.0) -> TaskStatus:
    rows = tuple(
        PartitionStatus("orders", n, "east.orders", PartitionState.RUNNING, 10 * n, 10 * n) for n in range(partitions)
    )
    told = TaskStatus(f"flow-{run}", "east", "west", run, 0, 1, time.time() - age, False, None, 1, 2, 3.0, 4.0, rows)
    return replace(told, topology="tests")


def moved(word: TaskStatus, *numbers: int) -> TaskStatus:
    """Return the next word, in which some partitions stand elsewhere than before."""
    rows = [replace(row, position=row.position + 1) if row.partition in numbers else row for row in word.partitions]
    return replace(word, time=word.time + 1, partitions=tuple(rows))


class Topic:
    """The status topic as one test sees it: what its own run has posted, in order."""

    def __init__(self, follower: Follower, run: str) -> None:
        self._follower = follower
        self._run = run
        follower.catch_up()

    def posted(self, last: str) -> list[str]:
        """Return what was posted since the last call up to a word behind its pages: "word", or the page's number."""
        names: list[str] = []
        deadline = time.monotonic() + SECONDS
        while last not in names:
            assert time.monotonic() < deadline, names
            for key, value in self._follower.poll(0.1):
                if self._run in key:
                    name = key.partition(f"/{self._run}")[2].lstrip("/") or "word"
                    names.append(name if value is not None else f"-{name}")
        return names


@pytest.fixture
def cluster(target_cluster: EmbeddedCluster) -> Cluster:
    return declared("west", target_cluster)


@pytest.fixture
def topic(cluster: Cluster, topic_name: str) -> Iterator[Topic]:
    Journal(cluster, own("tests").status).ensure()
    follower = Journal(cluster, own("tests").status).follow()
    yield Topic(follower, topic_name)
    follower.close()


def read(reader: StatusReader, run: str) -> list[TaskStatus]:
    return [one for one in reader.current() if one.run == run]


def wait_for(reader: StatusReader, expected: TaskStatus) -> None:
    eventually("the status is read", lambda: read(reader, expected.run), lambda found: found == [expected])


def test_only_pages_with_news_are_posted(cluster: Cluster, topic: Topic, topic_name: str) -> None:
    writer, early, said = StatusWriter(cluster, "tests"), StatusReader(cluster, "tests"), word(topic_name, 250)
    assert read(early, topic_name) == []
    expected = [["0", "1", "2", "word"], ["word"], ["2", "word"], ["0", "1", "word"]]
    for numbers, posted in zip([(), (), (249,), (7, 99, 100)], expected, strict=True):
        said = moved(said, *numbers)
        writer.post_last(said)
        assert topic.posted("word") == posted
        wait_for(early, said)
    late = StatusReader(cluster, "tests")
    assert read(late, topic_name) == [said]
    for reader in (early, late):
        assert read(reader, topic_name)[0] is read(reader, topic_name)[0]
        reader.close()


def test_a_task_that_has_fewer_partitions_takes_pages_back(cluster: Cluster, topic: Topic, topic_name: str) -> None:
    writer, reader = StatusWriter(cluster, "tests"), StatusReader(cluster, "tests")
    for partitions, posted in (
        (250, ["0", "1", "2", "word"]),
        (120, ["-2", "1", "word"]),
        (100, ["-0", "-1", "word"]),
        (250, ["0", "1", "2", "word"]),
    ):
        said = word(topic_name, partitions)
        writer.post_last(said)
        assert topic.posted("word") == posted
        wait_for(reader, said)
    reader.close()


def test_what_an_outage_may_have_swallowed_is_said_again(
    cluster: Cluster, topic: Topic, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = StatusWriter(cluster, "tests"), StatusReader(cluster, "tests")
    post = Journal.post
    lost = f"{topic_name}/1"
    monkeypatch.setattr(
        Journal, "post", lambda journal, key, value: None if key.endswith(lost) else post(journal, key, value)
    )
    said = word(topic_name, 250)
    writer.post_last(said)
    assert topic.posted("word") == ["0", "2", "word"]
    wait_for(reader, replace(said, partitions=said.partitions[:100] + said.partitions[200:]))
    monkeypatch.undo()
    monkeypatch.setattr(status_topic, "_REPEAT_SECONDS", 0.0)
    writer.post_last(said)
    assert topic.posted("word") == ["0", "1", "2", "word"]
    wait_for(reader, said)
    reader.close()


def test_pages_of_long_dead_runs_are_forgotten_with_their_words(
    cluster: Cluster, topic: Topic, topic_name: str
) -> None:
    old, new = word(f"{topic_name}-old", 250, age=7_200), word(f"{topic_name}-new", 250)
    writer = StatusWriter(cluster, "tests")
    for one in (old, new):
        writer.post_last(one)
    assert topic.posted("-new")[-1] == "-new"
    forget_old(cluster, "tests", [old.flow, new.flow])
    left = [key for key in Journal(cluster, own("tests").status).read() if topic_name in key]
    assert sorted(left) == [f"{new.flow}/0/{new.run}{page}" for page in ("", "/0", "/1", "/2")]
