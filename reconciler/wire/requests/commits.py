"""Transactions with records, and the positions that are committed in them, for `committer` and `arrival`.

Each function is one request and one answer, like the methods of `Wire`. TxnOffsetCommit is sent in version 3, which
carries the member's id and generation: a member of an older generation cannot commit (KIP-447). Neither can it outside
of transactions (`commit_acknowledged`), which `receipts` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.wire.protocol.error_codes import ErrorCode
from reconciler.wire.protocol.library import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from reconciler.wire.protocol.values import BrokerError, by_topic
from reconciler.wire.requests.client import Wire
from reconciler.wire.requests.group import Membership
from reconciler.wire.requests.transactions import Transactor

# A partition of a topic, by name and number.
Log = tuple[str, int]

_CLASSIC = 3
_OFFSET_FETCH = 7
# Later versions name topics by id.
_OFFSET_COMMIT = 8
_OFFSET_COMMIT_WITH_MEMBER = 2
_INIT_PRODUCER_ID = 4
_NONE = -1
# What is wrong with a partition, and not with the producer; the others are answered OPERATION_NOT_ATTEMPTED then.
_OF_PARTITIONS = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})


@dataclass(frozen=True, slots=True)
class CommittedPosition:
    """A committed position.

    Attributes:
        offset: the next one to be copied.
        note: the metadata committed with it.
    """

    offset: int
    note: str


class PartitionsRefused(BrokerError):
    """Partitions, or positions of them, were not added to a transaction, which cannot go on as it was to.

    Attributes:
        codes: why, by partition.
    """

    def __init__(self, codes: Mapping[Log, int]) -> None:
        super().__init__(next(iter(codes.values())))
        self.codes = codes


async def add_partitions(wire: Wire, transactor: Transactor, logs: Iterable[Log]) -> None:
    """Add partitions to the producer's transaction, which begins with the first of them.

    Raises:
        ConnectionLost: no answer: `settle` before anything else.
        PartitionsRefused: some were refused, so none was added.
        BrokerError: refused; CONCURRENT_TRANSACTIONS while the transaction before has markers to be written.
    """
    topics: Any = [
        AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=partitions)
        for name, partitions in by_topic(logs).items()
    ]
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactor.transactional_id,
        v3_and_below_producer_id=transactor.producer_id,
        v3_and_below_producer_epoch=transactor.epoch,
        v3_and_below_topics=topics,
        max_version=_CLASSIC,
    )
    answer = await wire.ask(request, transactor.node)
    codes = {
        (topic.name, partition.partition_index): int(partition.partition_error_code)
        for topic in answer.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
        if partition.partition_error_code
    }
    if refused := {log: code for log, code in codes.items() if code in _OF_PARTITIONS}:
        raise PartitionsRefused(refused)
    for code in codes.values():
        _check(code)


async def in_doubt(wire: Wire, node: int, logs: Iterable[Log], producer_id: int) -> set[Log]:
    """Return the partitions that have a transaction of this producer open, or that `node` leads no more.

    There are none on brokers that lack the request (before 2.8): they leave no marker out.

    Raises:
        ConnectionLost: no answer.
        BrokerError: refused.
    """
    topics: Any = [
        DescribeProducersRequest.TopicRequest(name=name, partition_indexes=partitions)
        for name, partitions in by_topic(logs).items()
    ]
    try:
        answer = await wire.ask(DescribeProducersRequest(topics=topics), node)
    except BrokerError as error:
        if error.code == ErrorCode.UNSUPPORTED_VERSION:
            return set()
        raise
    return {
        (topic.name, partition.partition_index)
        for topic in answer.topics
        for partition in topic.partitions
        if partition.error_code
        or any(
            one.producer_id == producer_id and one.current_txn_start_offset >= 0 for one in partition.active_producers
        )
    }


async def add_offsets(wire: Wire, transactor: Transactor, group: str) -> None:
    """Let the transaction hold positions of a group.

    Raises:
        ConnectionLost: no answer: `settle` before anything else.
        BrokerError: refused, or not ready yet.
    """
    request = AddOffsetsToTxnRequest(
        transactional_id=transactor.transactional_id,
        producer_id=transactor.producer_id,
        producer_epoch=transactor.epoch,
        group_id=group,
        max_version=_CLASSIC,
    )
    _check((await wire.ask(request, transactor.node)).error_code)


async def commit_positions(
    wire: Wire, transactor: Transactor, membership: Membership, positions: Mapping[Log, CommittedPosition]
) -> None:
    """Write positions into the transaction; they count when it is committed.

    Args:
        wire: to the cluster.
        transactor: the producer.
        membership: the member that commits, with its group's coordinator.
        positions: by remote partition.

    Raises:
        ConnectionLost: no answer.
        PartitionsRefused: some were refused for what their topics are; the transaction can hold the others alone.
        BrokerError: refused: above all ILLEGAL_GENERATION and UNKNOWN_MEMBER_ID, this member may commit no more.
    """
    of_topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    topics = _positions_of_topics(of_topic, of_topic.TxnOffsetCommitRequestPartition, positions)
    request = TxnOffsetCommitRequest(
        transactional_id=transactor.transactional_id,
        group_id=membership.group,
        producer_id=transactor.producer_id,
        producer_epoch=transactor.epoch,
        generation_id=membership.generation,
        member_id=membership.member,
        group_instance_id=None,
        topics=topics,
        min_version=_CLASSIC,
        max_version=_CLASSIC,
    )
    answer = await wire.ask(request, membership.node)
    if codes := _of_partitions_alone(_refused(answer)):
        raise PartitionsRefused(codes)


async def end(wire: Wire, transactor: Transactor, committed: bool) -> None:
    """End the transaction; its markers are written after the answer.

    Raises:
        ConnectionLost: no answer: `settle`, then ask for the positions.
        BrokerError: refused, or not ready yet.
    """
    request = EndTxnRequest(
        transactional_id=transactor.transactional_id,
        producer_id=transactor.producer_id,
        producer_epoch=transactor.epoch,
        committed=committed,
        max_version=_CLASSIC,
    )
    _check((await wire.ask(request, transactor.node)).error_code)


async def commit_acknowledged(
    wire: Wire, membership: Membership, positions: Mapping[Log, CommittedPosition]
) -> dict[Log, int]:
    """Commit positions outside of any transaction; return the codes of those partitions that alone were refused.

    Args:
        wire: to the cluster.
        membership: the member that commits, with its group's coordinator.
        positions: by remote partition.

    Raises:
        ConnectionLost: no answer: they may be committed or not.
        BrokerError: refused: above all ILLEGAL_GENERATION and UNKNOWN_MEMBER_ID, this member may commit no more.
    """
    return _of_partitions_alone(await commit(wire, membership, positions))


async def commit(wire: Wire, membership: Membership, positions: Mapping[Log, CommittedPosition]) -> dict[Log, int]:
    """Commit positions outside of any transaction; return the codes of those that were refused.

    Args:
        wire: to the cluster.
        membership: the member that commits; one without id (generation -1) is refused where the group has members.
        positions: by partition.

    Raises:
        ConnectionLost: no answer: they may be committed or not.
        BrokerError: the broker does not support the request.
    """
    of_topic = OffsetCommitRequest.OffsetCommitRequestTopic
    topics = _positions_of_topics(of_topic, of_topic.OffsetCommitRequestPartition, positions)
    request = OffsetCommitRequest(
        group_id=membership.group,
        generation_id_or_member_epoch=membership.generation,
        member_id=membership.member,
        group_instance_id=None,
        retention_time_ms=_NONE,
        topics=topics,
        min_version=_OFFSET_COMMIT_WITH_MEMBER,
        max_version=_OFFSET_COMMIT,
    )
    return _refused(await wire.ask(request, membership.node))


def _refused(answer: Any) -> dict[Log, int]:
    """Return the error codes of a response, of the partitions that have one."""
    return {
        (topic.name, partition.partition_index): int(partition.error_code)
        for topic in answer.topics
        for partition in topic.partitions
        if partition.error_code
    }


def _of_partitions_alone(codes: dict[Log, int]) -> dict[Log, int]:
    """Return the codes, unless one of them concerns the producer or the member: then raise it."""
    for code in codes.values():
        if code not in _OF_PARTITIONS:
            raise BrokerError(code)
    return codes


async def idempotent_producer(wire: Wire) -> int:
    """Return a new producer id that belongs to no transactional id.

    Raises:
        ConnectionLost: no answer.
        BrokerError: refused, or not ready yet; ErrorCode.UNSUPPORTED_VERSION where there are no such producers.
    """
    request = InitProducerIdRequest(
        transactional_id=None,
        transaction_timeout_ms=_NONE,
        producer_id=_NONE,
        producer_epoch=_NONE,
        max_version=_INIT_PRODUCER_ID,
    )
    answer = await wire.ask(request, None)
    _check(answer.error_code)
    return int(answer.producer_id)


async def positions(
    wire: Wire, membership: Membership, logs: Iterable[Log], *, stable: bool = True
) -> dict[Log, CommittedPosition]:
    """Return the committed positions of some partitions; those that have none are left out.

    Args:
        wire: to the cluster.
        membership: member of the group.
        logs: the partitions.
        stable: whether to refuse them while a transaction that holds one of them is not ended; else such a transaction
            is passed over.

    Raises:
        ConnectionLost: no answer.
        BrokerError: refused; UNSTABLE_OFFSET_COMMIT as above.
    """
    topics: Any = [
        OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=partitions)
        for name, partitions in by_topic(logs).items()
    ]
    request = OffsetFetchRequest(
        group_id=membership.group,
        topics=topics,
        require_stable=stable,
        min_version=_OFFSET_FETCH,
        max_version=_OFFSET_FETCH,
    )
    answer = await wire.ask(request, membership.node)
    _check(answer.error_code)
    found = {}
    for topic in answer.topics:
        for partition in topic.partitions:
            _check(partition.error_code)
            if partition.committed_offset >= 0:
                found[topic.name, partition.partition_index] = CommittedPosition(
                    int(partition.committed_offset), partition.metadata or ""
                )
    return found


def _positions_of_topics(of_topic: Any, of_partition: Any, positions: Mapping[Log, CommittedPosition]) -> Any:
    """Return positions as both requests that commit them have them, in the classes of either."""
    return [
        of_topic(
            name=name,
            partitions=[
                of_partition(
                    partition_index=number,
                    committed_offset=positions[name, number].offset,
                    committed_leader_epoch=_NONE,
                    committed_metadata=positions[name, number].note,
                )
                for number in partitions
            ],
        )
        for name, partitions in by_topic(positions).items()
    ]


def _check(code: int) -> None:
    if code:
        raise BrokerError(code)
