"""Which partitions a flow has now, and how they are shared among its tasks.

`refresh` in the driver asks and shares out, for the whole run; the planner of rounds and the tasks read what it
announces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, TopicDescription

from reconciler.model.errors import Problem
from reconciler.model.flow import Flow
from reconciler.model.spec import FlowSpec
from reconciler.replicator.place import Place
from reconciler.state import clients, records
from reconciler.state.faults import is_refusal, refused

_TIMEOUT = 5.0


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


def matching(spec: FlowSpec) -> list[Place]:
    """Return the partitions that the flow wants, as the source cluster lists them now.

    What may not be copied for its name is among them, so that nobody takes it for copied: see `without_name`.

    Raises:
        Unreachable: AB310, the source does not answer.
        EnvironmentFault: what `clients.ask` and `clients.make` raise: it does not let us in, or the like.
    """
    topics = clients.metadata(spec.source, _TIMEOUT)[1].topics
    mode = "translated" if spec.flow.offsets == "translated" else "identical"
    return [
        Place(name, partition, "" if spec.flow.nameless(name) else spec.flow.remote_topic(name), mode)
        for name in sorted(topics)
        if spec.flow.wants(name, spec.aliases)
        for partition in sorted(topics[name].partitions)
    ]


def hidden(spec: FlowSpec, found: Collection[str]) -> list[Problem]:
    """Return the plain names under `include` that the source does not list because our user may not see them.

    Args:
        spec: the flow.
        found: the topics that it lists.

    Raises:
        EnvironmentFault: what `clients.make` raises.
    """
    wanted = [name for name in spec.flow.topics.literals() if name not in found and spec.flow.wants(name, spec.aliases)]
    if not wanted:
        return []
    admin, seconds = clients.make(AdminClient, spec.source), spec.source.clients.admin.patience(_TIMEOUT)
    described = admin.describe_topics(TopicCollection(wanted), request_timeout=seconds)
    refusals = [name for name in wanted if _is_refused(described[name])]
    return [refused(spec.source, "READ", f"topic {name}") for name in refusals]


def _is_refused(answer: Future[TopicDescription]) -> bool:
    try:
        answer.result()
    except KafkaException as error:
        return is_refusal(error.args[0])
    return False


def misfit(spec: FlowSpec, place: Place) -> str | None:
    """Say in what a partition that was assigned differs from what its flow declares; None where it fits.

    `matching` makes places that fit. Assignments come to a task through a topic that others may write to, so each is
    held against the task's own specification before anything is read or written.
    """
    flow, topic = spec.flow, place.topic
    if not flow.wants(topic, spec.aliases):
        return f"flow {flow.name} does not take topic {topic}"
    if (nameless := flow.nameless(topic)) is not None:
        return f"flow {flow.name} has no name for its copy: {nameless}"
    if (remote := flow.remote_topic(topic)) != place.remote:
        return f"its copy by flow {flow.name} is {remote}"
    if place.offsets not in ((flow.offsets,) if flow.offsets != "auto" else ("identical", "translated")):
        return f"flow {flow.name} declares offsets: {flow.offsets}"
    return None if place.partition >= 0 else "partitions are counted from 0"


def without_name(flow: Flow, places: Iterable[Place], shares: Shares) -> dict[str, str]:
    """Return, by original, why its copy has no name of its own.

    This is the last guard before anything is written; where somebody looks after remote topics, he has said so already.
    Of several topics with one name the one that a task has keeps it.

    Args:
        flow: the flow.
        places: what it wants and nobody has left out yet.
        shares: what its tasks have.
    """
    found: dict[str, str] = {}
    takers: dict[str, set[str]] = {}
    for topic, remote in dict.fromkeys((place.topic, place.remote) for place in places):
        if remote:
            takers.setdefault(remote, set()).add(topic)
        else:
            found[topic] = flow.nameless(topic) or "its copy has no name"
    for topic, shared in shares.topics.items():
        takers.setdefault(shared.remote, set()).add(topic)
    for remote, topics in takers.items():
        for topic in topics if len(topics) > 1 else ():
            if topic not in shares.topics:
                others = ", ".join(sorted(topics - {topic}))
                found[topic] = f"{remote} would be the copy of {others} too: a copy has one original"
    return found


@dataclass(frozen=True)
class SharedTopic:
    """One topic in the shares.

    Attributes:
        remote: the remote topic.
        tasks: the task of each partition.
        offsets: the mode of its offsets.
        late: the partitions that appeared while the run went on.
    """

    remote: str
    tasks: tuple[int, ...]
    offsets: str = "identical"
    late: tuple[int, ...] = ()


@dataclass(frozen=True)
class Shares:
    """Which task has which partition, in one run. Shares only grow: what a task has it keeps.

    Attributes:
        tasks: how many tasks there are.
        topics: by original name.
    """

    tasks: int = 1
    topics: Mapping[str, SharedTopic] = field(default_factory=dict)

    def extended(self, places: Iterable[Place], most: int) -> Shares:
        """Deal the partitions that nobody has yet, each to the task with the fewest.

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
            # What is copied in one way goes on so.
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

    def assignments(self) -> list[Assignment]:
        """Return what each task has, in the order of the tasks."""
        return [Assignment(task, self.tasks, self.of(task)) for task in range(self.tasks)]

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
        known = records.shares(value)
        topics = {
            name: SharedTopic(remote, tasks, offsets, late)
            for name, (remote, tasks, offsets, late) in known.get("topics", {}).items()
        }
        return cls(known["tasks"], topics)
