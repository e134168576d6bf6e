"""Partitions shared out to tasks: each once, evenly, those of a topic to different tasks; nothing ever moves."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.declared.flow import Flow
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import Selection
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.replicator.driver.discovery import without_name
from reconciler.replicator.partition.shares import Place, Shares

COUNTS = st.lists(st.integers(1, 9), max_size=6)
TASKS = st.integers(1, 8)


def places(*counts: int) -> list[Place]:
    return [Place(f"t{topic}", n, f"east.t{topic}") for topic, count in enumerate(counts) for n in range(count)]


def loads(shares: Shares) -> list[int]:
    return [len(share.places) for share in shares.assignments()]


@settings(deadline=None)
@given(COUNTS, TASKS)
def test_every_partition_goes_to_one_task_and_loads_differ_by_one(counts: list[int], tasks: int) -> None:
    all_of_them = places(*counts)
    shares = Shares().extended(all_of_them, tasks)
    dealt = [place for share in shares.assignments() for place in share.places]
    assert sorted(dealt, key=all_of_them.index) == all_of_them
    assert shares.tasks == max(1, min(tasks, len(all_of_them)))
    assert [(share.task, share.tasks) for share in shares.assignments()] == [
        (n, shares.tasks) for n in range(shares.tasks)
    ]
    assert max(loads(shares)) - min(loads(shares)) <= 1


@settings(deadline=None)
@given(COUNTS, COUNTS, TASKS)
def test_what_a_task_has_it_keeps_when_topics_come_grow_and_go(before: list[int], after: list[int], tasks: int) -> None:
    shares = Shares().extended(places(*before), tasks)
    grown = shares.extended(places(*after), tasks)
    assert grown.tasks >= shares.tasks
    for task in range(shares.tasks):
        assert set(shares.of(task)) <= set(grown.of(task))
    dealt = [place for share in grown.assignments() for place in share.places]
    assert len(dealt) == len(set(dealt))
    assert set(dealt) == {*places(*before), *places(*after)}


def test_new_partitions_go_to_the_task_with_the_fewest() -> None:
    shares = Shares().extended(places(3), 2)
    assert loads(shares) == [2, 1]
    grown = shares.extended(places(3, 2), 2)
    assert [place.topic for place in grown.of(1)] == ["t0", "t1"]
    assert loads(grown) == [3, 2]


def test_more_partitions_than_tasks_get_more_tasks() -> None:
    shares = Shares().extended(places(1), 4)
    grown = shares.extended(places(3), 4)
    assert (shares.tasks, grown.tasks, loads(grown)) == (1, 3, [1, 1, 1])


def test_the_same_again_changes_nothing() -> None:
    shares = Shares().extended(places(3, 5), 3)
    assert shares.extended(places(3, 5), 3) == shares


def test_the_partitions_of_one_topic_go_to_different_tasks() -> None:
    shares = Shares().extended(places(3, 3), 3)
    assert [[place.topic for place in share.places] for share in shares.assignments()] == [["t0", "t1"]] * 3


def test_one_task_waits_when_there_is_nothing() -> None:
    (only,) = Shares().extended([], 4).assignments()
    assert (only.task, only.tasks, only.places) == (0, 1, ())


@settings(deadline=None)
@given(COUNTS, TASKS)
def test_shares_survive_json(counts: list[int], tasks: int) -> None:
    shares = Shares().extended(places(*counts), tasks)
    assert Shares.from_json(json.loads(json.dumps(shares.to_json()))) == shares


LUMPING = Flow("f", "east", "west", Selection((".*",)), ReplicationPolicy("rename", rules=(RenameRule("x.*", "a:b"),)))


def test_topics_that_would_share_a_copy_are_left_out_all_of_them() -> None:
    both = [Place("one", 0, "all"), Place("one", 1, "all"), Place("two", 0, "all"), Place("three", 0, "three")]
    found = without_name(LUMPING, both, Shares())
    assert found == {
        "one": "all would be the copy of two too: a copy has one original",
        "two": "all would be the copy of one too: a copy has one original",
    }


def test_a_newcomer_never_gets_into_the_copy_that_a_task_has() -> None:
    shares = Shares().extended([Place("one", 0, "all")], 1)
    assert list(without_name(LUMPING, [Place("one", 0, "all"), Place("two", 0, "all")], shares)) == ["two"]
    assert list(without_name(LUMPING, [Place("two", 0, "all")], shares)) == ["two"], "one is gone; its copy stays"


def test_a_topic_whose_copy_has_no_name_is_left_out_with_the_reason() -> None:
    (why,) = without_name(LUMPING, [Place("x1", 0, ""), Place("two", 0, "two")], Shares()).values()
    assert "x1 of east would be called 'a:b': its name has the character ':' in it" in why


def test_what_appeared_while_the_run_went_on_stays_marked() -> None:
    shares = Shares().extended(places(2), 2).extended([place._replace(is_late=True) for place in places(4, 1)], 2)
    late = {(place.topic, place.partition) for one in shares.assignments() for place in one.places if place.is_late}
    first, second = sorted(shares.topics)
    assert late == {(first, 2), (first, 3), (second, 0)}
    # Looked at again, they are what they were.
    again = Shares.from_json(json.loads(json.dumps(shares.to_json()))).extended(places(4, 1), 2)
    assert again == shares
