"""Journals on a real broker: newest value by key, tombstones, following, and failures with the right name."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from confluent_kafka import KafkaError, KafkaException

from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.tasks.status import PartitionState, PartitionStatus, Reason, TaskStatus
from reconciler.state.copies import Copies
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.follower import Follower
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import JournalTopic, own
from reconciler.state.status import StatusReader, StatusWriter, forget_old
from tests.support.clusters.kafka import declared, topic_configs

SECONDS = 300.0
# Up to two questions of a second each, and a client that is made first: a busy machine gets time.
SOON = 10.0
NOBODY = Cluster("gone", ("127.0.0.1:1",))


@pytest.fixture
def cluster(target_cluster: EmbeddedCluster) -> Cluster:
    return declared("west", target_cluster)


@pytest.fixture
def topic(topic_name: str) -> JournalTopic:
    return JournalTopic(topic_name, {"segment.ms": "60000"})


@pytest.fixture
def written(cluster: Cluster, topic: JournalTopic) -> Iterator[Journal]:
    made = Journal(cluster, topic)
    assert made.ensure()
    yield made


def heard(follower: Follower, count: int) -> list[tuple[str, Value | None]]:
    """Return the next `count` values that a follower hears."""
    found: list[tuple[str, Value | None]] = []
    deadline = time.monotonic() + SECONDS
    while len(found) < count:
        assert time.monotonic() < deadline, found
        found += follower.poll(0.1)
    return found


def test_it_is_made_once_and_compacted(target_cluster: EmbeddedCluster, cluster: Cluster, topic: JournalTopic) -> None:
    assert Journal(cluster, topic).ensure()
    assert not Journal(cluster, topic).ensure()
    configs = topic_configs(target_cluster, topic.name)
    assert (configs["cleanup.policy"], configs["segment.ms"]) == ("compact", "60000")


def test_a_missing_journal_is_empty(cluster: Cluster, topic: JournalTopic) -> None:
    assert Journal(cluster, topic).read() == {}


def test_a_new_journal_is_empty(written: Journal) -> None:
    assert written.read() == {}


def test_the_newest_value_of_each_key_is_read(written: Journal) -> None:
    written.write("a", {"n": 1})
    written.write_all({"b": {"n": 2}, "ключ": {"text": "é漢"}, "a": {"n": 3}})
    assert written.read() == {"a": {"n": 3}, "b": {"n": 2}, "ключ": {"text": "é漢"}}


def test_a_tombstone_removes_a_key(written: Journal) -> None:
    written.write_all({"a": {"n": 1}, "b": {"n": 2}})
    written.write("a", None)
    assert written.read() == {"b": {"n": 2}}
    written.write("b", None)
    assert written.read() == {}


def test_a_follower_that_only_catches_up_sees_everything_each_time(written: Journal) -> None:
    follower = written.follow(polls=False)
    try:
        assert follower.catch_up() == {}
        written.write("a", {"n": 1})
        assert follower.catch_up() == {"a": {"n": 1}}
        assert follower.catch_up() == {"a": {"n": 1}}
        written.write_all({"b": {"n": 2}, "a": None})
        assert follower.catch_up() == {"b": {"n": 2}}
        assert follower.next_offset == 3
    finally:
        follower.close()


def test_a_long_journal_is_read_whole(written: Journal) -> None:
    values: dict[str, Value | None] = {f"key-{n}": {"n": n, "text": "x" * 500} for n in range(3_000)}
    written.write_all(values)
    assert written.read() == values


def test_a_follower_goes_on_where_it_caught_up(written: Journal) -> None:
    written.write("a", {"n": 1})
    follower = written.follow()
    assert follower.catch_up() == {"a": {"n": 1}}
    assert list(follower.poll(0.0)) == []
    written.write("a", None)
    written.write("b", {"n": 2})
    assert heard(follower, 2) == [("a", None), ("b", {"n": 2})]
    follower.close()


def test_a_follower_of_a_missing_journal_hears_the_first_value(cluster: Cluster, topic: JournalTopic) -> None:
    follower = Journal(cluster, topic).follow()
    assert follower.catch_up() == {}
    assert list(follower.poll(0.0)) == []
    late = Journal(cluster, topic)
    late.ensure()
    late.write("a", {"n": 1})
    assert heard(follower, 1) == [("a", {"n": 1})]
    follower.close()


def test_what_was_posted_is_stored_after_a_flush(written: Journal) -> None:
    for n in range(50):
        written.post("a", {"n": n})
    written.flush()
    assert written.read() == {"a": {"n": 49}}


class Ended:
    """A producer that has met a fatal error: whatever is called next raises it."""

    def produce(self, *_arguments: object, **_options: object) -> None:
        raise KafkaException(KafkaError(KafkaError._FATAL, "desynchronized", True))


def test_a_producer_at_its_end_takes_one_word_with_it_and_nobody_else(
    written: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written._producer, "client", Ended())
    written.post("a", {"n": 1})
    written.post("a", {"n": 2})
    written.flush()
    assert written.read() == {"a": {"n": 2}}


@pytest.mark.parametrize("what", ["read", "ensure", "follow", "status"])
def test_a_cluster_that_does_not_answer_is_named_soon(what: str, topic: JournalTopic) -> None:
    absent = Journal(NOBODY, topic, timeout=1.0)
    calls: dict[str, Callable[[], object]] = {
        "read": absent.read,
        "ensure": absent.ensure,
        "follow": lambda: absent.follow().catch_up(),
        "status": lambda: Journal(NOBODY, own("tests").status, timeout=1.0).read(),
    }
    began = time.monotonic()
    with pytest.raises(Unreachable) as caught:
        calls[what]()
    assert time.monotonic() - began < SOON
    (problem,) = caught.value.problems
    assert problem.code == "AB310"
    assert problem.where == "cluster gone (127.0.0.1:1)"
    assert caught.value.exit_code == 6


def test_a_value_that_cannot_be_stored_is_an_error_soon(topic: JournalTopic) -> None:
    began = time.monotonic()
    with pytest.raises(EnvironmentFault) as caught:
        Journal(NOBODY, topic, timeout=1.0).write("a", {"n": 1})
    assert time.monotonic() - began < SOON
    assert caught.value.problems[0].code in ("AB310", "AB311")


def test_writing_to_a_missing_journal_is_an_error(cluster: Cluster, topic: JournalTopic) -> None:
    with pytest.raises(AnabranchError) as caught:
        Journal(cluster, topic, timeout=2.0).write("a", {"n": 1})
    assert topic.name in str(caught.value)


# --- status ----------------------------------------------------------------------------------------------------------


def said(run: str, partitions: int = 1, age: float = 0.0, task: int = 0, reason: Reason | None = None) -> TaskStatus:
    rows = tuple(
        PartitionStatus(f"topic-{n}", n, f"east.topic-{n}", PartitionState.RUNNING, n, n, reason)
        for n in range(partitions)
    )
    told = TaskStatus(f"flow-{run}", "east", "west", run, task, 2, time.time() - age, False, None, 1, 2, 3.0, 4.0, rows)
    return replace(told, topology="tests")


def read(reader: StatusReader, run: str) -> list[TaskStatus]:
    return [status for status in reader.current() if status.run == run]


def test_the_newest_word_of_each_task_is_read(cluster: Cluster, topic_name: str) -> None:
    Journal(cluster, own("tests").status).ensure()
    reader, writer = StatusReader(cluster, "tests"), StatusWriter(cluster, "tests")
    words = [said(topic_name, task=0, age=5), said(topic_name, task=1), said(topic_name, task=0)]
    for word in words:
        writer.post_last(word)
    assert read(reader, topic_name) == [words[2], words[1]]
    again = said(topic_name, task=1)
    writer.post_last(again)
    deadline = time.monotonic() + SECONDS
    while read(reader, topic_name) != [words[2], again]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    reader.close()


def test_a_task_with_thousands_of_troubled_partitions_can_say_so(cluster: Cluster, topic_name: str) -> None:
    Journal(cluster, own("tests").status).ensure()
    word = said(
        topic_name, partitions=10_000, reason=Reason("AB213", "WRITE on topic east.orders is refused: grant it")
    )
    StatusWriter(cluster, "tests").post_last(word)
    reader = StatusReader(cluster, "tests")
    assert read(reader, topic_name) == [word]
    reader.close()


def test_long_dead_runs_are_forgotten(cluster: Cluster, topic_name: str) -> None:
    Journal(cluster, own("tests").status).ensure()
    old, new = said(f"{topic_name}-old", age=7_200), said(f"{topic_name}-new", age=60)
    writer = StatusWriter(cluster, "tests")
    for word in (old, new):
        writer.post_last(word)
    forget_old(cluster, "tests", [old.flow, new.flow])
    reader = StatusReader(cluster, "tests")
    assert read(reader, old.run) == []
    assert read(reader, new.run) == [new]
    reader.close()


def test_copy_records_that_nobody_waited_for_are_stored_at_the_end(target: Cluster, topic_name: str) -> None:
    Journal(target, own("tests").copies).ensure()
    for number in range(5):
        copies = Copies(target, "tests")
        copies.post("flow", topic_name, number, CopyRecord("s", "t"))
        copies.close()
        del copies
    copies = Copies(target, "tests")
    copies.refresh()
    found = [copies.get("flow", topic_name, number) for number in range(5)]
    copies.close()
    assert found == [CopyRecord("s", "t")] * 5


@pytest.mark.parametrize("other", [None, CopyRecord("x", "t")], ids=["lost", "stored-by-another-meanwhile"])
def test_a_copy_record_that_an_outage_lost_is_stored_before_the_next_is_read(
    target: Cluster, topic_name: str, monkeypatch: pytest.MonkeyPatch, other: CopyRecord | None
) -> None:
    """A recreated topic is known by the records of its other partitions: each takeover counts on all of them."""
    Journal(target, own("tests").copies).ensure()
    ours, others = Copies(target, "tests"), Copies(target, "tests")
    with monkeypatch.context() as outage:
        outage.setattr(Journal, "post", lambda *_: None)
        ours.post("flow", topic_name, 0, CopyRecord("s", "t"))
        ours.post("flow", topic_name, 0, CopyRecord("s", "t", 5))
    if other is not None:
        others.put("flow", topic_name, 0, other)
    ours.refresh()
    others.refresh()
    wanted = other or CopyRecord("s", "t", 5)
    assert [one.get("flow", topic_name, 0) for one in (ours, others)] == [wanted] * 2
    # Once it is stored, what another process writes holds.
    others.put("flow", topic_name, 0, CopyRecord("y", "t"))
    ours.refresh()
    assert ours.get("flow", topic_name, 0) == CopyRecord("y", "t")
    assert ours.ids("flow", topic_name) == {("y", "t"): {0}}
    ours.close()
    others.close()


def test_what_is_posted_while_a_lost_record_is_stored_again_is_the_newest(
    target: Cluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Journal(target, own("tests").copies).ensure()
    ours, others = Copies(target, "tests"), Copies(target, "tests")
    with monkeypatch.context() as outage:
        outage.setattr(Journal, "post", lambda *_: None)
        ours.post("flow", topic_name, 0, CopyRecord("s", "t", 5))
    newest, store = [CopyRecord("s", "t", 9)], Journal.write_all

    def after_another(journal: Journal, values: Mapping[str, Value | None]) -> int:
        if newest:
            ours.post("flow", topic_name, 0, newest.pop())
            journal.flush()
        return store(journal, values)

    with monkeypatch.context() as busy:
        busy.setattr(Journal, "write_all", after_another)
        ours.refresh()
    others.refresh()
    assert [one.get("flow", topic_name, 0) for one in (ours, others)] == [CopyRecord("s", "t", 9)] * 2
    ours.close()
    others.close()


def test_threads_share_the_copy_records_of_a_target(target: Cluster, topic_name: str) -> None:
    """The tasks of a process write and read them at the same time: what one of them has written, none forgets."""
    Journal(target, own("tests").copies).ensure()
    copies = Copies(target, "tests")

    def begin(number: int) -> list[CopyRecord | None]:
        flow, record, later = f"flow-{number}", CopyRecord("s", str(number)), CopyRecord("s", str(number), 7)
        seen = []
        for partition in range(5):
            copies.put(flow, topic_name, partition, record)
            copies.refresh()
            seen.append(copies.get(flow, topic_name, partition))
            copies.post(flow, topic_name, partition, later)
            seen.append(copies.get(flow, topic_name, partition))
        copies.refresh()
        return [*seen, *(copies.get(flow, topic_name, partition) for partition in range(5))]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(begin, range(8)))
    for number, seen in enumerate(found):
        record, later = CopyRecord("s", str(number)), CopyRecord("s", str(number), 7)
        assert seen == [record, later] * 5 + [later] * 5
    copies.close()
    stored = Copies(target, "tests")
    stored.refresh()
    assert [stored.get(f"flow-{number}", topic_name, 4) for number in range(8)] == [seen[-1] for seen in found]
    stored.close()


def test_a_write_waits_for_its_own_values_however_much_others_post(target: Cluster, topic_name: str) -> None:
    journal = Journal(target, own("tests").status, timeout=30.0)
    journal.ensure()
    over = threading.Event()

    def go_on() -> None:
        while not over.is_set():
            journal.post(f"{topic_name}/posted", {"time": time.time()})

    poster = threading.Thread(target=go_on)
    poster.start()
    try:
        ends = [journal.write(f"{topic_name}/{number}", {"number": number}) for number in range(20)]
    finally:
        over.set()
        poster.join()
    assert ends == sorted(set(ends))
    journal.flush()
    found = journal.read()
    assert [found[f"{topic_name}/{number}"]["number"] for number in range(20)] == list(range(20))
