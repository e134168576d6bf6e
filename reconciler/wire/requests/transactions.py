"""Transactions without records, and the markers that end transactions: the two ways to use up an offset.

`fill` and `probe` call these functions; each is one request and one answer, like the methods of `Wire`. Clients send
the classic versions of these requests (AddPartitionsToTxn up to 3, EndTxn up to 3), which keep a producer's epoch from
one transaction to the next on every broker; from EndTxn 5 on (KIP-890) each transaction would bump it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from reconciler.wire.protocol.error_codes import ErrorCode
from reconciler.wire.protocol.library import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    WriteTxnMarkersRequest,
)
from reconciler.wire.protocol.values import BrokerError, ConnectionLost
from reconciler.wire.requests.client import Wire

# An unfinished transaction whose owner is gone is aborted by its coordinator after this time.
_TIMEOUT_MS = 60_000
_CLASSIC = 3
# No broker takes a longer one than transaction.max.timeout.ms.
_REFUSED_MS = 2**31 - 1
# States in which a coordinator has nothing more to write for a transactional id.
_ENDED = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})


@dataclass(frozen=True, slots=True)
class Transactor:
    """A transactional id whose transactions are all ended, and the producer that it has now.

    Attributes:
        transactional_id: its name.
        node: its coordinator.
        producer_id: of its producer.
        epoch: of its producer; an older one is refused by the coordinator.
    """

    transactional_id: str
    node: int
    producer_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Markers:
    """Markers for one partition.

    Attributes:
        topic: the topic.
        partition: its number.
        producer_id: whose transaction they seem to end.
        epoch: likewise; the broker refuses one older than it has.
        coordinator_epoch: the broker refuses one older than it has of this producer.
        count: how many.
        committed: whether they are commit markers.
    """

    topic: str
    partition: int
    producer_id: int
    epoch: int
    coordinator_epoch: int
    count: int
    committed: bool = False


async def settle(wire: Wire, transactional_id: str, node: int | None = None) -> Transactor:
    """Fence earlier producers with `transactional_id` (InitProducerId): no transaction of theirs is open afterwards.

    An open transaction is aborted, and CONCURRENT_TRANSACTIONS answered until its markers are written.

    Args:
        wire: to the cluster.
        transactional_id: the name.
        node: its coordinator, where that is known.

    Raises:
        ConnectionLost: no answer.
        BrokerError: refused, or not ready yet.
    """
    at = await wire.coordinator(transactional_id) if node is None else node
    answer = await _begun(wire, transactional_id, at, _TIMEOUT_MS)
    _check(answer.error_code)
    return Transactor(transactional_id, at, int(answer.producer_id), int(answer.producer_epoch))


async def check_write(wire: Wire, transactional_id: str) -> None:
    """Have WRITE on a transactional id checked, without any effect.

    InitProducerId is sent with a time-out that brokers refuse, which they do after the check of the ACLs and before
    they store anything (`KafkaApis.handleInitProducerIdRequest`, `TransactionCoordinator`).

    Raises:
        ConnectionLost: no answer.
        BrokerError: refused, or not ready yet; UNSUPPORTED_VERSION, there are no transactions.
    """
    code = (await _begun(wire, transactional_id, await wire.coordinator(transactional_id), _REFUSED_MS)).error_code
    if code != ErrorCode.INVALID_TRANSACTION_TIMEOUT:
        _check(code)


async def _begun(wire: Wire, transactional_id: str, node: int, timeout_ms: int) -> Any:
    """Return a coordinator's response to InitProducerId for a transactional id."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=timeout_ms,
        producer_id=-1,
        producer_epoch=-1,
        max_version=4,
    )
    return await wire.ask(request, node)


async def was_used(wire: Wire, transactional_id: str) -> bool:
    """Return whether the coordinator has `transactional_id`; True where it lacks the request (before 3.0).

    Raises:
        ConnectionLost: no answer.
        BrokerError: refused, or not ready yet.
    """
    node = await wire.coordinator(transactional_id)
    try:
        code = await wire.transaction_code(node, transactional_id)
    except BrokerError as error:
        if error.code == ErrorCode.UNSUPPORTED_VERSION:
            return True
        raise
    if code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return False
    _check(code)
    return True


async def names_of(wire: Wire, producer_ids: Collection[int]) -> dict[int, str]:
    """Return the transactional ids of some producers; those are left out that no coordinator names to us.

    Brokers before 3.0 name none, and one that is away just now names none of its own.
    """
    return {number: name for number, (name, _) in (await _states_of(wire, producer_ids)).items()}


async def ended_of(wire: Wire, producer_ids: Collection[int]) -> dict[int, str]:
    """Return the transactional ids of those producers whose coordinator has no markers to write, as `names_of` does."""
    states = await _states_of(wire, producer_ids)
    return {number: name for number, (name, state) in states.items() if state in _ENDED}


async def _states_of(wire: Wire, producer_ids: Collection[int]) -> dict[int, tuple[str, str]]:
    """Return transactional ids and the states of their transactions (ListTransactions), by producer id."""
    found: dict[int, tuple[str, str]] = {}
    for node in wire.nodes if producer_ids else ():
        request = ListTransactionsRequest(state_filters=[], producer_id_filters=list(producer_ids), max_version=0)
        try:
            answer = await wire.ask(request, node)
        except (ConnectionLost, BrokerError):
            continue
        found |= {
            int(one.producer_id): (str(one.transactional_id), str(one.transaction_state))
            for one in answer.transaction_states
        }
    return found


async def unfinished(wire: Wire, prefix: str) -> list[str]:
    """Return the transactional ids with a prefix whose transactions are open, or have markers still to be written.

    Those that no coordinator names to us are left out: brokers before 3.0 name none, and one that is away none of its
    own.
    """
    found: set[str] = set()
    for node in wire.nodes:
        request = ListTransactionsRequest(state_filters=[], producer_id_filters=[], max_version=0)
        try:
            answer = await wire.ask(request, node)
        except (ConnectionLost, BrokerError):
            continue
        found |= {
            str(one.transactional_id)
            for one in answer.transaction_states
            if one.transactional_id.startswith(prefix) and one.transaction_state not in _ENDED
        }
    return sorted(found)


async def begin(wire: Wire, transactor: Transactor, topic: str, partition: int) -> None:
    """Begin a transaction in one partition; CONCURRENT_TRANSACTIONS while the one before has markers to be written.

    Raises:
        ConnectionLost: no answer: `settle` before anything else.
        BrokerError: refused, or not ready yet.
    """
    place: Any = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[partition])
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactor.transactional_id,
        v3_and_below_producer_id=transactor.producer_id,
        v3_and_below_producer_epoch=transactor.epoch,
        v3_and_below_topics=[place],
        max_version=_CLASSIC,
    )
    answer = await wire.ask(request, transactor.node)
    _check(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)


async def abort(wire: Wire, transactor: Transactor) -> None:
    """End the transaction; its markers are written after the answer.

    Raises:
        ConnectionLost: no answer: `settle` before anything else.
        BrokerError: refused, or not ready yet.
    """
    request = EndTxnRequest(
        transactional_id=transactor.transactional_id,
        producer_id=transactor.producer_id,
        producer_epoch=transactor.epoch,
        committed=False,
        max_version=_CLASSIC,
    )
    answer = await wire.ask(request, transactor.node)
    _check(answer.error_code)


async def write_markers(wire: Wire, node: int, markers: Markers) -> None:
    """Write markers as a coordinator would, at the partition's leader; allowed to administrators of the cluster.

    One answer stands for all of them, so only the log end shows how many there are now.

    Raises:
        ConnectionLost: no answer: any number of them may be in the log, or come there later.
        BrokerError: the broker refused at least one.
    """
    one: Any = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=markers.producer_id,
        producer_epoch=markers.epoch,
        transaction_result=markers.committed,
        topics=[
            WriteTxnMarkersRequest.WritableTxnMarker.WritableTxnMarkerTopic(
                name=markers.topic, partition_indexes=[markers.partition]
            )
        ],
        coordinator_epoch=markers.coordinator_epoch,
    )
    answer = await wire.ask(WriteTxnMarkersRequest(markers=[one] * markers.count), node)
    for marker in answer.markers:
        for topic in marker.topics:
            for partition in topic.partitions:
                _check(partition.error_code)


def _check(code: int) -> None:
    if code:
        raise BrokerError(code)
