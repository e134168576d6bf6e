"""Which tasks share a slot of Spark: a process of Python each, and beside many of them nothing but threads.

`session` asks once for a run. A few tasks have a process each, as Python runs in one thread at a time; of a hundred
flows most have little to do, and a hundred processes would hold the libraries' memory a hundred times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from reconciler.model.tasks.slots import local_slots
from reconciler.model.tasks.spec import FlowSpec


class TaskOfFlow(NamedTuple):
    """A task of a flow: its name, and the number of the task."""

    flow: str
    task: int


def flows_of(tasks: Iterable[TaskOfFlow]) -> list[str]:
    """Return the flows of some tasks, each once, in their order."""
    return list(dict.fromkeys(task.flow for task in tasks))


def slots_of(specs: Sequence[FlowSpec], processors: float | None) -> list[tuple[TaskOfFlow, ...]]:
    """Return the tasks of each slot; those of one flow are in different slots as far as there are as many.

    Args:
        specs: the flows of a run.
        processors: how many there are on the machine that runs all tasks; None for a Spark cluster, where each task has
            a slot of its own.
    """
    tasks = [TaskOfFlow(spec.flow.name, task) for spec in specs for task in range(spec.flow.tasks)]
    if processors is None:
        return [(task,) for task in tasks]
    count = local_slots(len(tasks), processors)
    return [tuple(tasks[slot::count]) for slot in range(count)]
