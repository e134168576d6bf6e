"""Copy records on a real broker: they are read once, then only what was appended, and all where that is not enough."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import Unreachable
from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.runs import CopyRecord
from reconciler.state import copies as copies_module
from reconciler.state.confluent.faults import unreachable
from reconciler.state.copies import Copies
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.follower import Follower
from reconciler.state.journals.journal import Journal
from reconciler.state.journals.topics import own
from tests.support.clusters.kafka import declared, delete
from tests.support.waiting import eventually

ONE, TWO = CopyRecord("s", "t"), CopyRecord("s", "t", 7)


class Two:
    """The copy records of a topology as two processes have them, and how often the first one has read all."""

    def __init__(self, cluster: Cluster, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster, self.name, self.whole = cluster, name, 0
        self.journal = Journal(cluster, own(name).copies)
        self.journal.ensure()
        self.others = Copies(cluster, name)
        self.ours = Copies(cluster, name)
        read = Follower.catch_up

        def counted(follower: Follower) -> dict[str, Value]:
            self.whole += 1
            return read(follower)

        monkeypatch.setattr(Follower, "catch_up", counted)
        monkeypatch.setattr(copies_module, "_WHOLE_EVERY", 3_600.0)
        self.ours.refresh()

    def seen(self, *flows: str) -> list[CopyRecord | None]:
        """Return what the first process has of the first partition of a copy, by flow, after it has read again."""
        self.ours.refresh()
        return [self.ours.get(flow, "copy", 0) for flow in flows]


@pytest.fixture
def two(target_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Two]:
    made = Two(declared("west", target_cluster), topic_name, monkeypatch)
    yield made
    made.ours.close()
    made.others.close()


def test_only_what_was_appended_is_read(two: Two) -> None:
    assert (two.ours.of_others("mine", "copy", 0), two.ours.ids("mine", "copy")) == ({}, {})
    two.others.put("mine", "copy", 0, ONE)
    two.others.put("theirs", "copy", 0, ONE)
    two.others.put("theirs", "copy", 0, TWO)
    two.others.put("theirs", "copy", 1, TWO)
    assert two.seen("mine", "theirs") == [ONE, TWO]
    assert two.ours.of_others("mine", "copy", 0) == {"theirs": TWO}
    assert two.ours.ids("theirs", "copy") == {("s", "t"): {0, 1}}
    assert two.seen("mine", "theirs") == [ONE, TWO]
    two.journal.write_all({"theirs/copy/0": None})
    assert two.seen("mine", "theirs") == [ONE, None]
    assert two.ours.of_others("mine", "copy", 0) == {}
    assert two.ours.ids("theirs", "copy") == {("s", "t"): {1}}
    assert two.whole == 1


def test_what_another_process_appends_holds_over_what_was_lost_before(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.others.put("mine", "copy", 0, ONE)
    assert two.seen("mine") == [ONE]
    with monkeypatch.context() as outage:
        outage.setattr(Journal, "post", lambda *_: None)
        two.ours.post("mine", "copy", 0, TWO)
        two.ours.post("mine", "copy", 1, TWO)
    two.others.put("mine", "copy", 0, CopyRecord("x", "t"))
    assert two.seen("mine") == [CopyRecord("x", "t")]
    assert two.whole == 1
    two.others.refresh()
    assert two.others.get("mine", "copy", 1) == TWO


def test_a_journal_that_was_made_anew_is_read_whole(target_cluster: EmbeddedCluster, two: Two) -> None:
    for partition in range(5):
        two.others.put("mine", "copy", partition, ONE)
    assert two.seen("mine") == [ONE]
    delete(target_cluster, own(two.name).copies.name)
    # Clients hear of it one after the other.
    eventually("it is gone", lambda: two.seen("mine"), lambda found: found == [None])
    two.journal.ensure()
    Copies(two.cluster, two.name).put("theirs", "copy", 0, TWO)
    eventually("it is there", lambda: two.seen("mine", "theirs"), lambda found: found == [None, TWO])
    assert two.ours.of_others("mine", "copy", 0) == {"theirs": TWO}


def test_what_an_error_came_behind_is_read_again(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    read, failures = Follower.appended, [unreachable(two.cluster, "it went away")]

    def fails_behind(follower: Follower) -> dict[str, Value | None] | None:
        found = read(follower)
        if failures:
            raise failures.pop()
        return found

    two.others.put("mine", "copy", 0, ONE)
    with monkeypatch.context() as outage:
        outage.setattr(Follower, "appended", fails_behind)
        with pytest.raises(Unreachable):
            two.ours.refresh()
        assert two.seen("mine") == [ONE]

    def refuses(*_: object) -> None:
        raise unreachable(two.cluster, "it went away")

    two.others.put("theirs", "copy", 0, TWO)
    with monkeypatch.context() as outage:
        outage.setattr(Journal, "post", lambda *_: None)
        outage.setattr(Journal, "write_all", refuses)
        two.ours.post("mine", "copy", 1, TWO)
        with pytest.raises(Unreachable):
            two.ours.refresh()
    assert two.seen("theirs") == [TWO]
    assert two.whole == 3
