"""Partitions dealt to tasks: each once, evenly, the partitions of a topic to different tasks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.replicator.channel import Place
from reconciler.replicator.discover import share_out


def places(*counts: int) -> list[Place]:
    return [Place(f"t{topic}", n, f"east.t{topic}") for topic, count in enumerate(counts) for n in range(count)]


@given(st.lists(st.integers(1, 9), max_size=6), st.integers(1, 8))
def test_every_partition_goes_to_one_task_and_loads_differ_by_one(counts: list[int], tasks: int) -> None:
    all_of_them = places(*counts)
    shares = share_out(all_of_them, tasks)
    dealt = [place for share in shares for place in share.places]
    assert sorted(dealt, key=all_of_them.index) == all_of_them
    assert len(shares) == max(1, min(tasks, len(all_of_them)))
    assert [(share.task, share.tasks) for share in shares] == [(n, len(shares)) for n in range(len(shares))]
    loads = [len(share.places) for share in shares]
    assert max(loads) - min(loads) <= 1


def test_the_partitions_of_one_topic_go_to_different_tasks() -> None:
    shares = share_out(places(3, 3), 3)
    assert [[place.topic for place in share.places] for share in shares] == [["t0", "t1"]] * 3


def test_one_task_waits_when_there_is_nothing() -> None:
    (only,) = share_out([], 4)
    assert (only.task, only.tasks, only.places) == (0, 1, ())
