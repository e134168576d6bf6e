"""Which partitions a flow has now, and how they are shared among its tasks.

The data source's planner asks at the start of each round; a task that has nothing to do asks until there is something.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from reconciler.model.errors import AnabranchError, EnvironmentFault, Problem
from reconciler.model.spec import FlowSpec
from reconciler.replicator.channel import Place
from reconciler.state.faults import in_words, is_authentication, principal
from reconciler.state.journal import unreachable

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
    """Return the partitions that the flow takes, as the source cluster lists them now.

    Raises:
        Unreachable: AB310, the source does not answer.
        EnvironmentFault: AB312 it does not let us in, AB304 a secret cannot be resolved.
    """
    reported: list[KafkaError] = []
    admin = AdminClient(spec.source.librdkafka() | {"log_level": "2", "error_cb": reported.append})
    try:
        topics = admin.list_topics(timeout=_TIMEOUT).topics
    except KafkaException as error:
        admin.poll(0)
        raise _fault(spec, error.args[0], reported) from None
    return [
        Place(name, partition, spec.flow.remote_topic(name))
        for name in sorted(topics)
        if spec.flow.takes(name, spec.aliases)
        for partition in sorted(topics[name].partitions)
    ]


def _fault(spec: FlowSpec, failure: KafkaError, reported: list[KafkaError]) -> EnvironmentFault:
    """Return why the source tells nothing, from what librdkafka reported meanwhile."""
    told = next((error for error in reported if error.code() != KafkaError._ALL_BROKERS_DOWN), failure)
    if not is_authentication(told):
        return unreachable(spec.source, in_words(told))
    return EnvironmentFault(
        Problem(
            "AB312",
            spec.source.where,
            f"does not let {principal(spec.source)} in: {in_words(told)}",
            "check security: protocol, mechanism, username and the password it refers to",
        )
    )


class Look(threading.Thread):
    """One look for topics of a flow, in a thread of its own: a source that does not answer takes long to say so.

    Attributes:
        found: whether there are any.
        failure: why that is not known.
    """

    def __init__(self, spec: FlowSpec) -> None:
        super().__init__(name=f"look-{spec.flow.name}", daemon=True)
        self._spec = spec
        self.found = False
        self.failure: AnabranchError | None = None

    def run(self) -> None:
        """Look."""
        try:
            self.found = bool(matching(self._spec))
        except AnabranchError as error:
            self.failure = error


def share_out(places: list[Place], tasks: int) -> list[Assignment]:
    """Deal `places` to at most `tasks` tasks, the partitions of one topic to different ones; one task at least."""
    count = max(1, min(tasks, len(places)))
    return [Assignment(task, count, tuple(places[task::count])) for task in range(count)]
