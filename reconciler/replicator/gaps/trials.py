"""The trials of the probe on one partition of its scratch topic: one for each thing that identical offsets depend on.

`probe` calls it and decides. A trial returns what is wrong, or an empty text; a missing permission proves nothing.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from reconciler.model.recorded.capabilities import Capability, ProbeFinding, Verdict
from reconciler.records.batch import NO_CRC, Batch
from reconciler.replicator.copy.producer_names import ProducerNames
from reconciler.replicator.gaps.fill import Filler, FillRefused, NotFilled
from reconciler.replicator.gaps.padding import empty_records
from reconciler.replicator.partition.shares import Place
from reconciler.wire import (
    COORDINATOR_NOT_READY,
    BrokerError,
    ErrorCode,
    Leader,
    Loop,
    ProduceAnswer,
    ProduceAsk,
    TopicInfo,
    Wire,
    when_ready,
)

_PATIENCE = 20.0

_AUTHORIZATION = frozenset(
    {
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
# A topic that was just made, or a coordinator that was just asked for the first time.
_NOT_YET = COORDINATOR_NOT_READY | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_ID,
}
_UNSUPPORTED = "UNSUPPORTED_VERSION"

_NOBODY = Leader(-1, -1, ErrorCode.LEADER_NOT_AVAILABLE)
_RECORDS = 2


class Scene(NamedTuple):
    """Where a probe runs.

    Attributes:
        topic: the scratch topic.
        identity: its transactional ids.
    """

    topic: str
    identity: ProducerNames


class Trials:
    """One pass over all capabilities, with a producer of its own.

    Args:
        loop: the probe's loop.
        wire: to the target.
        scene: where.
        partition: of the scratch topic.
    """

    def __init__(self, loop: Loop, wire: Wire, scene: Scene, partition: int) -> None:
        self._loop = loop
        self._wire = wire
        self._partition = partition
        self._scratch, self._identity = scene
        self._place = Place(scene.topic, partition, scene.topic)
        self._producer_id = -1
        self._unwritten: BrokerError | None = None
        self._stamp = int(time.time() * 1_000)
        self._deadline = time.monotonic() + _PATIENCE

    async def all(self) -> list[ProbeFinding]:
        """Run all trials in order; each depends on those before."""
        trials: tuple[tuple[Capability, Callable[[], Awaitable[str]]], ...] = (
            (Capability.LOG_END, self._log_end),
            (Capability.REPEAT, self._repeat),
            (Capability.SEQUENCE, self._sequence),
            (Capability.PRODUCERS, self._producers),
            (Capability.MARKERS, lambda: self._one_offset("markers")),
            (Capability.TRANSACTIONS, lambda: self._one_offset("transactions")),
        )
        return [await self._try(capability, trial) for capability, trial in trials]

    async def _try(self, capability: Capability, trial: Callable[[], Awaitable[str]]) -> ProbeFinding:
        verdict = Verdict.FAILS
        try:
            detail = await when_ready(self._loop, trial, _NOT_YET, self._deadline - time.monotonic())
            verdict = Verdict.FAILS if detail else Verdict.HOLDS
        except BrokerError as error:
            detail = f"the broker answers {error}"
            if error.code in _AUTHORIZATION:
                verdict = Verdict.REFUSED
        except FillRefused as error:
            detail = str(error)
            if error.name != _UNSUPPORTED:
                verdict = Verdict.REFUSED
        except NotFilled as error:
            detail = str(error)
        return ProbeFinding(capability, verdict, detail)

    # --- the trials: each returns what is wrong, or nothing ----------------------------------------------------------

    async def _log_end(self) -> str:
        # A new producer id each time, so that the state of earlier ones does not matter.
        name = f"{self._identity.transactional_id(self._place)}.{uuid.uuid4().hex}"
        try:
            self._producer_id = await self._wire.producer_id(name)
            before = await self._end()
            answer = await self._write(0)
            after = await self._end()
        except BrokerError as error:
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
        answer = await self._write(_RECORDS + 5, expect=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        found = (answer.error, await self._end())
        return _unless(
            found,
            (int(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), before),
            "error and log end of a batch beyond the next sequence",
        )

    async def _producers(self) -> str:
        self._after_a_batch()
        leader = await self._leader()
        states = await self._wire.producers(leader.node, self._scratch, self._partition)
        ours = [state.last_sequence for state in states if state.producer_id == self._producer_id]
        return _unless(ours, [_RECORDS - 1], "the last sequence of a producer")

    async def _one_offset(self, how: str) -> str:
        filler = Filler(self._loop, self._wire, self._identity, how)
        await filler.settle(self._place)
        before = await self._end()
        return _unless(await filler.fill(self._place, await self._topic(), before, 1), before + 1, "the log end")

    async def _topic(self) -> TopicInfo:
        info = (await self._wire.topics([self._scratch]))[self._scratch]
        leader = info.partitions.get(self._partition, _NOBODY)
        if info.error or leader.error:
            raise BrokerError(info.error or leader.error)
        return info

    async def _leader(self) -> Leader:
        return (await self._topic()).partitions[self._partition]

    async def _end(self) -> int:
        leader = await self._leader()
        end = await self._wire.log_end(leader.node, self._scratch, self._partition, leader.epoch)
        if end is None:
            message = "no log end yet"
            raise BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, message)
        return end

    async def _write(self, sequence: int, expect: int = 0) -> ProduceAnswer:
        info = await self._topic()
        records = empty_records(_RECORDS)
        batch = Batch(0, _RECORDS - 1, _RECORDS, 0, self._stamp, self._stamp, -1, -1, -1, NO_CRC, records)
        ask = ProduceAsk(self._scratch, info.topic_id, self._partition, batch.rewritten(self._producer_id, 0, sequence))
        answer = await self._wire.write_one(info.partitions[self._partition].node, ask)
        if answer.error not in (0, expect):
            raise BrokerError(answer.error, answer.message)
        return answer


def _unless(found: object, expected: object, what: str) -> str:
    return "" if found == expected else f"expected {expected} as {what}; found {found}"
