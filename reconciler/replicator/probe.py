"""The probe: tries on a scratch topic of a target what identical offsets rest on, once for each cluster.

`drive` asks before Spark starts, so that a cluster that only speaks Kafka's protocol is refused before any record is
written. What was seen is remembered in the target's journal; what was missing is tried again at every start, as
somebody may have mended it. The scratch topic stays: another probe may be at work on it, deleting needs one permission
more, and a name that is deleted and made again takes time to be true on every broker.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Sequence

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from reconciler.model.capabilities import Capabilities, Capability, Finding, Verdict
from reconciler.model.cluster import Cluster
from reconciler.model.errors import AnabranchError, EnvironmentFault, Problem
from reconciler.model.flow import Flow
from reconciler.replicator.batch import Batch
from reconciler.replicator.channel import Place
from reconciler.replicator.fill import Filler, FillRefused, NotFilled
from reconciler.replicator.identity import Identity
from reconciler.replicator.padding import empty_records
from reconciler.replicator.wire import ConnectionLost, ErrorCode, Loop, ProduceAnswer, ProduceAsk, TopicInfo, Wire
from reconciler.state import faults
from reconciler.state.journal import unreachable
from reconciler.state.probes import Probes

SCRATCH = "anabranch-probe.internal"
# Nobody reads what the trials leave behind.
_SCRATCH_CONFIG = {"cleanup.policy": "delete", "retention.ms": "3600000"}
_REPLICATION = 3

_TIMEOUT = 5.0
_PATIENCE = 20.0
_PAUSE = 0.05
_ATTEMPTS = 3

# Kafka's error codes, https://kafka.apache.org/protocol#protocol_error_codes
_LEADER_NOT_AVAILABLE = 5
_OUT_OF_ORDER_SEQUENCE_NUMBER = 45
_AUTHORIZATION = frozenset({29, 31, 53})
# A topic that was just made, or a coordinator that was just asked for the first time.
_NOT_YET = frozenset({3, 5, 6, 14, 15, 16, 74, 75, 76, 100})
_UNSUPPORTED = "UNSUPPORTED_VERSION"

_PLACE = Place(SCRATCH, 0, SCRATCH)
_IDENTITY = Identity("internal", "probe")
_RECORDS = 2


def check(target: Cluster, flows: Sequence[Flow], warn: Callable[[str], None]) -> None:
    """Make sure that `target` can hold identical offsets, as far as its permissions let us see.

    Args:
        target: the cluster.
        flows: those that write to it.
        warn: called with what could not be tried.

    Raises:
        Unreachable: AB310, the cluster does not answer.
        EnvironmentFault: AB317 it cannot, AB313 a flow demands markers and may not write them.
    """
    demanding = any(flow.fill == "markers" for flow in flows)
    try:
        cluster_id = _scratch_topic(target)
    except KafkaException as error:
        if not faults.is_refusal(error.args[0]):
            raise unreachable(target, error.args[0].str()) from None
        warn(f"{target.where}: what the cluster does was not tried, as topic {SCRATCH} may not be made")
        return
    found = _remembered(target, cluster_id)
    if found is None or not found.is_sufficient or not _can_fill(found, demanding):
        found = probe(target, cluster_id)
        if found.is_sufficient:
            _remember(target, found, warn)
    _judge(target, found, demanding, warn)


def probe(target: Cluster, cluster_id: str) -> Capabilities:
    """Try everything now, on the scratch topic, which must exist.

    Raises:
        Unreachable: AB310, the cluster does not answer.
    """
    loop = Loop()
    wire = Wire(loop, target, "anabranch-probe", _TIMEOUT)
    findings: list[Finding] = []

    async def run() -> None:
        for _ in range(_ATTEMPTS):
            findings[:] = await _Trials(loop, wire).all()
            # Another probe at the same time would disturb the counting.
            if not any(found.verdict is Verdict.FAILS for found in findings):
                return

    try:
        loop.run(run)
    except ConnectionLost as error:
        raise unreachable(target, error) from None
    finally:
        wire.close()
        loop.close()
    return Capabilities(cluster_id, time.time(), tuple(findings))


def _scratch_topic(target: Cluster) -> str:
    """Make the scratch topic if it is missing; return the cluster's id."""
    admin = AdminClient(target.librdkafka() | {"log_level": "2"})
    metadata = admin.list_topics(timeout=_TIMEOUT)
    if SCRATCH not in metadata.topics:
        replicas = min(_REPLICATION, len(metadata.brokers))
        new = NewTopic(SCRATCH, 1, replicas, config=_SCRATCH_CONFIG)
        try:
            admin.create_topics([new], operation_timeout=_TIMEOUT)[SCRATCH].result(_TIMEOUT)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    return str(metadata.cluster_id)


def _remembered(target: Cluster, cluster_id: str) -> Capabilities | None:
    try:
        return Probes(target, _TIMEOUT).read(cluster_id)
    except AnabranchError:
        # Who may not read the journal tries again each time.
        return None


def _remember(target: Cluster, found: Capabilities, warn: Callable[[str], None]) -> None:
    try:
        Probes(target, _TIMEOUT).write(found)
    except AnabranchError as error:
        warn(f"what the cluster does is tried again at the next start: {error.problems[0].message}")


def _judge(target: Cluster, found: Capabilities, demanding: bool, warn: Callable[[str], None]) -> None:
    failed = found.required(Verdict.FAILS)
    if failed:
        remedy = "this cluster cannot hold copies with identical offsets; take Apache Kafka 2.8 or newer"
        raise EnvironmentFault([Problem("AB317", target.where, str(one), remedy) for one in failed])
    for one in found.required(Verdict.REFUSED):
        warn(f"{target.where}: could not be tried: {one}")
    if _can_fill(found, demanding):
        return
    if demanding:
        raise EnvironmentFault(faults.refused(target, "ALTER", "the cluster, which `fill: markers` needs"))
    warn(f"{target.where}: neither markers nor transactions can be written; partitions park at gaps")


def _can_fill(found: Capabilities, by_markers: bool) -> bool:
    ways = (Capability.MARKERS,) if by_markers else (Capability.MARKERS, Capability.TRANSACTIONS)
    return any(found.verdict(way) is Verdict.HOLDS for way in ways)


class _Trials:
    """One pass over all capabilities with a producer of its own."""

    def __init__(self, loop: Loop, wire: Wire) -> None:
        self._loop = loop
        self._wire = wire
        self._producer_id = -1
        self._unwritten: ErrorCode | None = None
        self._stamp = int(time.time() * 1_000)
        self._deadline = time.monotonic() + _PATIENCE

    async def all(self) -> list[Finding]:
        """Try everything, in an order in which each trial rests on those before."""
        trials: tuple[tuple[Capability, Callable[[], Awaitable[str]]], ...] = (
            (Capability.LOG_END, self._log_end),
            (Capability.REPEAT, self._repeat),
            (Capability.SEQUENCE, self._sequence),
            (Capability.PRODUCERS, self._producers),
            (Capability.MARKERS, lambda: self._one_offset("markers")),
            (Capability.TRANSACTIONS, lambda: self._one_offset("transactions")),
        )
        return [await self._try(capability, trial) for capability, trial in trials]

    async def _try(self, capability: Capability, trial: Callable[[], Awaitable[str]]) -> Finding:
        verdict = Verdict.FAILS
        try:
            detail = await self._when_ready(trial)
            verdict = Verdict.FAILS if detail else Verdict.HOLDS
        except ErrorCode as error:
            detail = f"the broker answers {error}"
            if error.code in _AUTHORIZATION:
                verdict = Verdict.REFUSED
        except FillRefused as error:
            detail = str(error)
            if error.name != _UNSUPPORTED:
                verdict = Verdict.REFUSED
        except NotFilled as error:
            detail = str(error)
        return Finding(capability, verdict, detail)

    async def _when_ready(self, trial: Callable[[], Awaitable[str]]) -> str:
        while True:
            try:
                return await trial()
            except ErrorCode as error:
                if error.code not in _NOT_YET or time.monotonic() > self._deadline:
                    raise
            await self._loop.sleep(_PAUSE)

    # --- the trials: each returns what is wrong, or nothing ----------------------------------------------------------

    async def _log_end(self) -> str:
        # A new producer each time: whoever was here before must not be in the way.
        name = f"{_IDENTITY.transactional_id(_PLACE)}.{uuid.uuid4().hex}"
        try:
            self._producer_id = await self._wire.producer_id(name)
            before = await self._end()
            answer = await self._write(0)
            after = await self._end()
        except ErrorCode as error:
            self._unwritten = error
            raise
        self._unwritten = None
        return _unless((answer.base_offset, after), (before, before + _RECORDS), "base offset and log end of a batch")

    def _after_a_batch(self) -> None:
        """Raise why there is no first batch for a trial to rest on."""
        if self._unwritten is not None:
            raise self._unwritten

    async def _repeat(self) -> str:
        self._after_a_batch()
        before = await self._end()
        answer = await self._write(0)
        found = (answer.base_offset, await self._end())
        return _unless(found, (before - _RECORDS, before), "base offset and log end of a repeated batch")

    async def _sequence(self) -> str:
        self._after_a_batch()
        before = await self._end()
        answer = await self._write(_RECORDS + 5, expect=_OUT_OF_ORDER_SEQUENCE_NUMBER)
        found = (answer.error, await self._end())
        return _unless(
            found, (_OUT_OF_ORDER_SEQUENCE_NUMBER, before), "error and log end of a batch beyond the next sequence"
        )

    async def _producers(self) -> str:
        self._after_a_batch()
        node = (await self._topic()).partitions[0].node
        states = await self._wire.producers(node, SCRATCH, 0)
        ours = [state.last_sequence for state in states if state.producer_id == self._producer_id]
        return _unless(ours, [_RECORDS - 1], "the last sequence of a producer")

    async def _one_offset(self, how: str) -> str:
        filler = Filler(self._loop, self._wire, _IDENTITY, how)
        await filler.settle(_PLACE)
        before = await self._end()
        return _unless(await filler.fill(_PLACE, await self._topic(), before, 1), before + 1, "the log end")

    async def _topic(self) -> TopicInfo:
        info = (await self._wire.topics([SCRATCH]))[SCRATCH]
        if info.error or info.partitions[0].error:
            raise ErrorCode(info.error or info.partitions[0].error)
        return info

    async def _end(self) -> int:
        leader = (await self._topic()).partitions[0]
        end = await self._wire.log_end(leader.node, SCRATCH, 0, leader.epoch)
        if end is None:
            message = "no log end yet"
            raise ErrorCode(_LEADER_NOT_AVAILABLE, message)
        return end

    async def _write(self, sequence: int, expect: int = 0) -> ProduceAnswer:
        info = await self._topic()
        batch = Batch(0, _RECORDS - 1, _RECORDS, 0, self._stamp, self._stamp, -1, -1, -1, 0, empty_records(_RECORDS))
        ask = ProduceAsk(SCRATCH, info.topic_id, 0, batch.rewritten(self._producer_id, 0, sequence))
        (answer,) = await self._wire.produce(info.partitions[0].node, [ask], lambda _error: None)
        if answer.error not in (0, expect):
            raise ErrorCode(answer.error, answer.message)
        return answer


def _unless(found: object, expected: object, what: str) -> str:
    return "" if found == expected else f"expected {expected} as {what}; found {found}"
