"""How far `--until-caught-up` must come: the sources' ends as they were at the start, and what is still missing."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Problem
from reconciler.model.offsets.committed import Log
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState, PartitionStatus, Reason, TaskStatus, words
from reconciler.replicator.copy.transaction_holders import TransactionHolder, holders
from reconciler.replicator.partition.shares import Place
from reconciler.state.confluent import clients
from reconciler.state.confluent.faults import LEADER_CHANGES, in_words, is_refusal, unreachable

_TIMEOUT = 10.0
_AGAIN_SECONDS = 0.2
# A new leader may report for a moment that a log ends before records that it has (seconds).
_SHORT_PATIENCE = 10.0
_Key = tuple[str, str, int]
_NOTHING: Mapping[tuple[str, str], str] = MappingProxyType({})


@dataclass(frozen=True)
class CatchUpProgress:
    """What is left to copy.

    Attributes:
        missing: how many partitions have not reached their goal.
        parked: those of them that are parked or paused, with their flow.
    """

    missing: int
    parked: tuple[tuple[str, PartitionStatus], ...]


class CatchUp:
    """The source offset that each partition of each flow must reach.

    A source that loses records in between, or whose topic is recreated, is copied up to where it ends then.
    """

    def __init__(self) -> None:
        self._ends: dict[_Key, int] = {}
        self._specs: dict[str, FlowSpec] = {}
        # Partitions whose open transactions are copied once they have ended.
        self._waits: set[_Key] = set()
        # Partitions whose log ends before its goal, and since when (monotonic seconds).
        self._short: dict[_Key, float] = {}

    def add(self, spec: FlowSpec, places: Sequence[Place]) -> None:
        """Take the ends of `places` as they are now.

        Raises:
            Unreachable: AB310, the source does not answer.
            EnvironmentFault: AB313, it refuses to return them.
        """
        self._specs[spec.flow.name] = spec
        self._ends |= _ends(spec, [(place.topic, place.partition) for place in places])
        self._waits |= {
            (spec.flow.name, place.topic, place.partition)
            for place in places
            if place.offsets == "identical" or spec.flow.isolation_level == "read_committed"
        }

    def progress(
        self, statuses: Iterable[TaskStatus], left_out: Mapping[tuple[str, str], str] = _NOTHING
    ) -> CatchUpProgress:
        """Compare the goals with the tasks' statuses.

        Args:
            statuses: the newest statuses of the tasks, also of other runs that share the flows.
            left_out: by flow and topic, why no task has it; it counts as parked.
        """
        known = {(s.flow, one.topic, one.partition): one for s, one in words(statuses, time.time())}
        self._lower(known)
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
        return CatchUpProgress(missing, tuple(parked))

    def held(self) -> list[Problem]:
        """Return what is held back by open transactions at the sources: goals may be reached without it (AB653).

        A source that does not answer, or refuses, is left out.
        """
        found: list[Problem] = []
        for flow, spec in self._specs.items():
            logs = [key[1:] for key in sorted(self._waits) if key[0] == flow]
            with contextlib.suppress(EnvironmentFault):
                stable, ends = _ends(spec, logs), _ends(spec, logs, committed=False)
                behind = {key: ends[key] - end for key, end in stable.items() if ends.get(key, 0) > end}
                whose = holders(spec.source, {key[1:]: stable[key] for key in behind})
                # A partition whose transaction has ended by now is copied like all that comes.
                found += [_held(spec, key[1:], behind[key], whose[key[1:]]) for key in behind if key[1:] in whose]
        return found

    def _lower(self, known: Mapping[_Key, PartitionStatus]) -> None:
        """Look up the ends of logs again that tasks have seen end before their goals for some time."""
        now = time.monotonic()
        short = {
            key
            for key, end in self._ends.items()
            if key in known and known[key].state is PartitionState.RUNNING and 0 <= known[key].end < end
        }
        self._short = {key: self._short.get(key, now) for key in short}
        due = [key for key, since in self._short.items() if now - since >= _SHORT_PATIENCE]
        for flow in {key[0] for key in due}:
            self._short |= dict.fromkeys((key for key in due if key[0] == flow), now)
            # A source that does not answer is tried again later.
            with contextlib.suppress(EnvironmentFault):
                ends = _ends(self._specs[flow], [key[1:] for key in due if key[0] == flow])
                self._ends |= {key: min(end, self._ends[key]) for key, end in ends.items()}


def _held(spec: FlowSpec, log: Log, count: int, holder: TransactionHolder) -> Problem:
    offsets = "1 offset stands" if count == 1 else f"{count:,} offsets stand"
    message = f"{offsets} behind {holder}: not copied before it has ended"
    remedy = "end its producer before clients leave the source, or wait until the transaction has timed out"
    return Problem("AB653", f"{spec.source.where}, topic {log[0]}, partition {log[1]}", message, remedy)


def _ends(spec: FlowSpec, logs: Sequence[Log], *, committed: bool = True) -> dict[_Key, int]:
    """Return where logs end at a flow's source, in `read_committed` or `read_uncommitted`.

    Partitions whose leader has just changed are asked for again, as long as a request may take.
    """
    found: dict[_Key, int] = {}
    admin, seconds = clients.make(AdminClient, spec.source), spec.source.clients.admin.patience(_TIMEOUT)
    deadline, asked = time.monotonic() + seconds, [TopicPartition(*log) for log in logs]
    # What an open transaction holds back cannot be copied yet.
    level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
    while asked:
        wanted = dict.fromkeys(asked, OffsetSpec.latest())
        answers = admin.list_offsets(wanted, isolation_level=level, request_timeout=seconds)
        asked = []
        for place, answer in answers.items():
            try:
                # No limit here: the request has one of its own.
                found[spec.flow.name, place.topic, place.partition] = answer.result().offset
            except KafkaException as error:
                if error.args[0].code() not in LEADER_CHANGES or time.monotonic() > deadline:
                    raise _no_end(spec, place, error.args[0]) from None
                asked.append(TopicPartition(place.topic, place.partition))
        if asked:
            time.sleep(_AGAIN_SECONDS)
    return found


def _no_end(spec: FlowSpec, place: TopicPartition, error: KafkaError) -> AnabranchError:
    if not is_refusal(error):
        return unreachable(spec.source, in_words(error))
    where = f"{spec.source.where}, {place.topic}/{place.partition}"
    return EnvironmentFault(Problem("AB313", where, f"its end offset is refused: {in_words(error)}", "grant DESCRIBE"))


def _left_out(key: _Key, end: int, left_out: Mapping[tuple[str, str], str]) -> PartitionStatus | None:
    """Return the status of a partition that no task has; None when some task must have it."""
    flow, topic, partition = key
    why = left_out.get((flow, topic))
    if why is None:
        return None
    return PartitionStatus(topic, partition, topic, PartitionState.PARKED, -1, end, Reason("AB231", why))
