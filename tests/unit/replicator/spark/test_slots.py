"""Which tasks share a slot: few do not, many share as many as the processors can serve, and none is left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import Selection
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.spark.slots import TaskOfFlow, slots_of

WEST = Cluster("west", ("w:9092",))


def specs(*tasks: int) -> list[FlowSpec]:
    return [
        FlowSpec("t", "r", Flow(f"f{n}", "east", "west", Selection(("x",)), tasks=count), WEST, WEST, ())
        for n, count in enumerate(tasks)
    ]


@pytest.mark.parametrize(
    ("flows", "processors", "slots"),
    [(1, 2.0, 1), (8, 0.5, 8), (9, 2.0, 8), (100, 2.0, 8), (100, 16.0, 64), (100, None, 100)],
)
def test_few_tasks_have_a_slot_each_and_many_share(flows: int, processors: float | None, slots: int) -> None:
    assert len(slots_of(specs(*[1] * flows), processors)) == slots


@given(st.lists(st.integers(1, 12), min_size=1, max_size=40), st.none() | st.floats(0.1, 32.0))
def test_every_task_has_a_slot_and_those_of_a_flow_different_ones(tasks: list[int], processors: float | None) -> None:
    found = slots_of(specs(*tasks), processors)
    there = [task for slot in found for task in slot]
    assert sorted(there) == sorted(TaskOfFlow(f"f{n}", task) for n, count in enumerate(tasks) for task in range(count))
    assert max(map(len, found)) - min(map(len, found)) <= 1
    for number, count in enumerate(tasks):
        of_flow = [slot for slot, members in enumerate(found) for task in members if task.flow == f"f{number}"]
        assert len(set(of_flow)) == min(count, len(found))
