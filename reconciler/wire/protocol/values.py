"""The values of requests and responses, and the two ways in which a request can fail."""

from __future__ import annotations

import re
import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import kafka.errors as kafka_errors

from reconciler.wire.protocol.error_codes import ErrorCode, error_name


class ConnectionLost(Exception):
    """No answer: what the request did at the broker is not known.

    Attributes:
        code: of docs/reference/errors.md, the reason for a partition that waits for an answer.
    """

    code = "AB220"


class Closed(ConnectionLost):
    """No answer, as the broker has closed the connection over which the request was sent."""


class NotLetIn(ConnectionLost):
    """There is no connection, as the cluster refuses our credentials, or we its certificate: nothing was sent."""

    code = "AB232"


class BrokenAnswer(ConnectionLost):
    """A broker's answer is not what was asked for: its size, its layout, or which request it answers."""

    code = "AB308"


class BrokerError(Exception):
    """The broker answered with an error.

    Attributes:
        code: Kafka's error code.
        name: its name, such as `TOPIC_AUTHORIZATION_FAILED`.
    """

    def __init__(self, code: int, detail: str | None = None) -> None:
        self.code = code
        self.name = error_name(code)
        super().__init__(f"{self.name}" + (f": {detail}" if detail else ""))


def error_text(error: BaseException) -> str:
    """Return the message of an error of the library or of the system, without its class, number and quotes."""
    if isinstance(error, kafka_errors.KafkaError):
        cause = error.args[0] if error.args else None
        if isinstance(cause, BaseException):
            return error_text(cause)
        if isinstance(cause, str) and cause:
            return cause
        return str(getattr(error, "message", "")) or _in_words(type(error))
    return str(getattr(error, "strerror", None) or error) or _in_words(type(error))


def _in_words(kind: type[BaseException]) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__.removesuffix("Error")).lower()


def by_topic(places: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Return the numbers of partitions by their topics, as most requests name them."""
    found: dict[str, list[int]] = defaultdict(list)
    for topic, number in places:
        found[topic].append(number)
    return dict(found)


class Leader(NamedTuple):
    """The leader of a partition: node id, leader epoch, and Kafka's error code for the partition."""

    node: int
    epoch: int
    error: int


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """One topic of a metadata response; `topic_id` is None where the broker is too old to have one."""

    name: str
    topic_id: uuid.UUID | None
    error: int
    partitions: dict[int, Leader]

    def leader_of(self, partition: int) -> Leader:
        """Return the leader of a partition.

        Raises:
            BrokerError: the topic's error, or the partition's; LEADER_NOT_AVAILABLE if it has no leader.
        """
        leader = self.partitions.get(partition)
        if self.error or leader is None or leader.error or leader.node < 0:
            raise BrokerError(self.error or (leader.error if leader else 0) or ErrorCode.LEADER_NOT_AVAILABLE)
        return leader


class FetchAsk(NamedTuple):
    """One partition of a fetch request."""

    topic: str
    topic_id: uuid.UUID | None
    partition: int
    offset: int
    leader_epoch: int
    max_bytes: int


class FetchAnswer(NamedTuple):
    """One partition of a fetch answer; `records` are whole batches, the last one possibly cut.

    `aborted` names the aborted transactions that reach into `records`: producer id and first offset of each. A broker
    that would rather have another one asked names that in `nearest`, and sends no records; -1 is none.
    """

    topic: str
    partition: int
    error: int
    high_watermark: int
    last_stable_offset: int
    log_start: int
    records: memoryview | bytes
    aborted: tuple[tuple[int, int], ...] = ()
    nearest: int = -1

    def raise_error(self) -> None:
        """Raise BrokerError when the broker answered with an error."""
        if self.error:
            raise BrokerError(self.error)


class ProduceAsk(NamedTuple):
    """One batch for one partition, in two pieces that need not stand together in memory: `head`, then `batch`."""

    topic: str
    topic_id: uuid.UUID | None
    partition: int
    batch: bytes | memoryview
    head: bytes = b""


class RecordError(NamedTuple):
    """A record for which a broker refuses a batch: its number in the batch, from 0, and the broker's message."""

    number: int
    message: str | None


class ProduceAnswer(NamedTuple):
    """What became of one batch.

    Attributes:
        topic: its name.
        partition: its number.
        error: Kafka's code; 0 where it stands.
        base_offset: where its first record stands.
        message: the broker's, of an error.
        records: the records for which the batch was refused; empty where the broker names none, as before 2.4.
    """

    topic: str
    partition: int
    error: int
    base_offset: int
    message: str | None
    records: tuple[RecordError, ...] = ()


@dataclass(frozen=True, slots=True)
class ProducerState:
    """The state of one producer in a partition, at its leader.

    A producer with markers alone has last sequence -1; one without markers has coordinator epoch -1. An open
    transaction has its first record at `opened_at`.
    """

    producer_id: int
    epoch: int
    last_sequence: int
    open_transaction: bool
    coordinator_epoch: int = -1
    opened_at: int = -1
