"""Which partitions are copied, and how they are shared among the tasks of a flow. Values.

`refresh` in the driver assigns them for the whole run. For a query of a user's program Spark starts several processes
that read them, and allows each ten seconds to start, so this module imports little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Place(NamedTuple):
    """Which partition.

    Attributes:
        topic: the original topic.
        partition: its number on both sides.
        remote: the remote topic.
        offsets: the mode of its offsets.
        is_late: whether it appeared during the run.
    """

    topic: str
    partition: int
    remote: str
    offsets: str = "identical"
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one task replicates in one round.

    Attributes:
        task: number of the task, from 0.
        tasks: how many there are.
        places: its partitions; empty when no topic matches yet.
    """

    task: int
    tasks: int
    places: tuple[Place, ...]


@dataclass(frozen=True)
class SharedTopic:
    """One topic in the shares.

    Attributes:
        remote: the remote topic.
        tasks: the task of each partition.
        offsets: the mode of its offsets.
        late: the partitions that appeared during the run.
    """

    remote: str
    tasks: tuple[int, ...]
    offsets: str = "identical"
    late: tuple[int, ...] = ()


@dataclass(frozen=True)
class Shares:
    """Which task has which partition, in one run. Shares only grow: a task keeps its partitions.

    Attributes:
        tasks: how many tasks there are.
        topics: by original name.
    """

    tasks: int = 1
    topics: Mapping[str, SharedTopic] = field(default_factory=dict)

    def extended(self, places: Iterable[Place], most: int) -> Shares:
        """Assign the partitions that no task has yet, each to the task with the fewest.

        Args:
            places: all partitions of the flow, those of a topic in their order.
            most: how many tasks there may be.
        """
        owners = {name: list(topic.tasks) for name, topic in self.topics.items()}
        known = {name: (topic.remote, topic.offsets) for name, topic in self.topics.items()}
        late = {name: list(topic.late) for name, topic in self.topics.items()}
        new = [place for place in places if place.partition >= len(owners.get(place.topic, ()))]
        count = max(self.tasks, min(most, len(new) + sum(len(tasks) for tasks in owners.values())))
        loads = Counter(task for tasks in owners.values() for task in tasks)
        for place in new:
            task = min(range(count), key=lambda number: (loads[number], number))
            loads[task] += 1
            # A topic keeps its offset mode during a run.
            known.setdefault(place.topic, (place.remote, place.offsets))
            late.setdefault(place.topic, []).extend([place.partition] if place.is_late else [])
            owners.setdefault(place.topic, []).append(task)
        topics = {
            name: SharedTopic(remote, tuple(owners[name]), offsets, tuple(late[name]))
            for name, (remote, offsets) in known.items()
        }
        return Shares(count, topics)

    def of(self, task: int) -> tuple[Place, ...]:
        """Return the partitions of one task."""
        return tuple(
            Place(name, partition, topic.remote, topic.offsets, partition in topic.late)
            for name, topic in self.topics.items()
            for partition, owner in enumerate(topic.tasks)
            if owner == task
        )

    def assignment(self, task: int) -> Assignment:
        """Return what one task has."""
        return Assignment(task, self.tasks, self.of(task))

    def assignments(self) -> list[Assignment]:
        """Return what each task has, in the order of the tasks."""
        return [self.assignment(task) for task in range(self.tasks)]

    def to_json(self) -> dict[str, Any]:
        """Return the shares as JSON types; `from_json` is its inverse."""
        topics = {
            name: [topic.remote, list(topic.tasks), topic.offsets, list(topic.late)]
            for name, topic in self.topics.items()
        }
        return {"tasks": self.tasks, "topics": topics}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Shares:
        """Read what `to_json` returned.

        Raises:
            Misfit: it is something else.
        """
        # Most processes that import this module do not read shares.
        from reconciler.state.journals import records  # noqa: PLC0415

        known = records.shares(value)
        topics = {
            name: SharedTopic(remote, tasks, offsets, late)
            for name, (remote, tasks, offsets, late) in known.get("topics", {}).items()
        }
        return cls(known["tasks"], topics)
