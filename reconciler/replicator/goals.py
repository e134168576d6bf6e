"""How far `--until-caught-up` must come: the sources' ends as they were at the start, and what is still missing."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from reconciler.model.errors import EnvironmentFault, Problem
from reconciler.model.spec import FlowSpec
from reconciler.model.status import PartitionState, PartitionStatus, Reason, TaskStatus, words
from reconciler.replicator.place import Place
from reconciler.state import clients
from reconciler.state.faults import in_words, is_refusal, unreachable

_TIMEOUT = 10.0
_NOTHING: Mapping[tuple[str, str], str] = MappingProxyType({})


@dataclass(frozen=True)
class Progress:
    """What is left to reach.

    Attributes:
        missing: how many partitions have not reached their goal.
        parked: those of them that are parked or paused, with their flow.
    """

    missing: int
    parked: tuple[tuple[str, PartitionStatus], ...]


class Goals:
    """The source offset that each partition of each flow must reach."""

    def __init__(self) -> None:
        self._ends: dict[tuple[str, str, int], int] = {}

    def add(self, spec: FlowSpec, places: Sequence[Place]) -> None:
        """Take the ends of `places` as they are now.

        Raises:
            Unreachable: AB310, the source does not answer.
            EnvironmentFault: AB313, it refuses to tell them.
        """
        if not places:
            return
        admin, seconds = clients.make(AdminClient, spec.source), spec.source.clients.admin.patience(_TIMEOUT)
        asked = {TopicPartition(place.topic, place.partition): OffsetSpec.latest() for place in places}
        # Read committed: what an open transaction holds back cannot be copied yet.
        answers = admin.list_offsets(asked, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=seconds)
        for place, answer in answers.items():
            try:
                # No limit here: the request has one of its own.
                self._ends[spec.flow.name, place.topic, place.partition] = answer.result().offset
            except KafkaException as error:
                if not is_refusal(error.args[0]):
                    raise unreachable(spec.source, in_words(error.args[0])) from None
                where = f"{spec.source.where}, {place.topic}/{place.partition}"
                problem = Problem("AB313", where, f"its end offset is refused: {error.args[0].str()}", "grant DESCRIBE")
                raise EnvironmentFault(problem) from None

    def progress(self, statuses: Iterable[TaskStatus], left_out: Mapping[tuple[str, str], str] = _NOTHING) -> Progress:
        """Compare the goals with what the tasks say.

        Args:
            statuses: the newest words of the tasks, also of other runs that share the flows.
            left_out: by flow and topic, why no task has it; it counts as parked.
        """
        known = {(s.flow, one.topic, one.partition): one for s, one in words(statuses, time.time())}
        missing = 0
        parked = []
        for key, end in self._ends.items():
            found = known.get(key) or _left_out(key, end, left_out)
            # An opening partition has a position from before its break, which may not hold any more.
            reached = found is not None and found.position >= end and found.state is PartitionState.RUNNING
            if not reached and (end > 0 or found is None):
                missing += 1
                if found is not None and found.state in (PartitionState.PARKED, PartitionState.PAUSED):
                    parked.append((key[0], found))
        return Progress(missing, tuple(parked))


def _left_out(key: tuple[str, str, int], end: int, left_out: Mapping[tuple[str, str], str]) -> PartitionStatus | None:
    """Return what to say of a partition that no task has; None when some task must have it."""
    flow, topic, partition = key
    why = left_out.get((flow, topic))
    if why is None:
        return None
    return PartitionStatus(topic, partition, topic, PartitionState.PARKED, -1, end, Reason("AB231", why))
