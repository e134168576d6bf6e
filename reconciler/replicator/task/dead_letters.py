"""Dead letters: writes records that the target refuses to a topic of their own, so that the others go on.

`task` calls it where a flow declares `dlq`. A record is written there before its offset is passed over, so it is never
lost; a task that is stopped between the two writes it twice. Key, value and headers stay as they are; further headers,
behind the record's own, hold its origin and the reason.

The layout of a record behind its deltas is Kafka's `DefaultRecord`: key, value, number of headers, headers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.flow import Flow
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.tasks.status import PartitionState, Reason
from reconciler.records.batch import CODEC_BITS, HEADER, NO_CRC, Batch
from reconciler.records.rewrite import RawRecord, packed, raw_records
from reconciler.records.varint import read, signed
from reconciler.replicator.copy.copy_records import CopyRecords
from reconciler.replicator.partition import reasons
from reconciler.replicator.partition.channel import Channel
from reconciler.replicator.partition.in_flight import InFlightBatch
from reconciler.replicator.partition.place import PartitionSides
from reconciler.replicator.partition.reasons import Verdict
from reconciler.replicator.partition.refusals import RefusedRecords
from reconciler.wire import BrokerError, ConnectionLost, ProduceAnswer, ProduceAsk, TopicInfo, Wire

_NO_PRODUCER = (-1, -1, -1)
# The bytes of dead letters in one batch, uncompressed: half of a topic's default limit.
_MOST_BYTES = 512 * 1024
# The bytes before a record's key, value and headers, at most: its size, attributes, time and offset.
_FRONT = 21


class DeadLetters:
    """Writes dead letters of one flow.

    Args:
        wire: to the target.
        flow: declares the topic.
        memory: the copy records, which hold the offsets put aside.
    """

    def __init__(self, wire: Wire, flow: Flow, memory: CopyRecords) -> None:
        self._wire = wire
        self._flow = flow
        self._memory = memory

    async def put_aside(self, channel: Channel, sent_batch: InFlightBatch, refused: Sequence[RefusedRecords]) -> None:
        """Write the refused records of a batch as dead letters, and let its channel go on without them, or park it."""
        topic = self._flow.dlq or ""
        try:
            letters = self._letters(channel, sent_batch, refused, int(time.time() * 1000))
            info = (await self._wire.topics([topic]))[topic]
            verdict = await self._write_all(channel, info, refused, letters, CODEC_BITS & _attributes(sent_batch))
        except (ConnectionLost, AnabranchError) as error:
            reason = Reason("AB220", str(error)) if isinstance(error, AnabranchError) else reasons.no_answer(error)
            channel.not_put_aside(PartitionState.OPENING, reason, time.monotonic())
        except BrokerError as error:
            channel.not_put_aside(*reasons.why_refused(error, "WRITE", f"topic {topic}"), time.monotonic())
        except ValueError as error:
            channel.not_put_aside(
                PartitionState.PARKED, reasons.undecodable(sent_batch.base_offset, error), time.monotonic()
            )
        else:
            if verdict is None:
                channel.put_aside()
            else:
                channel.not_put_aside(*verdict, time.monotonic())

    async def _write_all(
        self,
        channel: Channel,
        info: TopicInfo,
        refused: Sequence[RefusedRecords],
        letters: Sequence[RawRecord],
        codec: int,
    ) -> Verdict | None:
        """Write letters in order, in batches that the topic takes; return the verdict where one of them is refused.

        Each batch is recorded as put aside before the next one is written: a task that is stopped in between repeats
        one batch.
        """
        sides = channel.sides
        assert sides is not None, "a channel that has sent something was open"
        most, at = _MOST_BYTES, 0
        while at < len(letters):
            together = packed(_some(letters[at:], most), codec)
            answer = await self._write(info, channel.place.partition, together)
            written = refused[at : at + together.record_count]
            if answer.error in reasons.TOO_LARGE and len(written) > 1:
                # The topic's limit is below that of batches at the source.
                most = min(most, sum(map(_size, letters[at : at + len(written)]))) // 2
                continue
            verdict = reasons.why_no_letter(info.name, written[0].reason, together.size, answer)
            if verdict is not None:
                return verdict
            # A marker will take its offset, and a later owner must not take that for another producer's.
            offsets = [one.offset for one in written]
            await self._memory.change(channel.place, partial(_without, offsets, sides))
            at += len(written)
        return None

    async def _write(self, info: TopicInfo, partition: int, letters: Batch) -> ProduceAnswer:
        if info.error:
            raise BrokerError(info.error)
        number = partition % len(info.partitions)
        leader = info.partitions[number]
        if leader.error:
            raise BrokerError(leader.error)
        ask = ProduceAsk(info.name, info.topic_id, number, letters.body, letters.header(*_NO_PRODUCER))
        return await self._wire.write_one(leader.node, ask)

    def _letters(
        self, channel: Channel, sent_batch: InFlightBatch, refused: Sequence[RefusedRecords], now: int
    ) -> list[RawRecord]:
        """Return the dead letters of some of a batch's records, in their order.

        Raises:
            ValueError: its records do not match its header.
        """
        place, count = channel.place, sent_batch.records
        header = HEADER.unpack(sent_batch.head)
        attributes, base_time, newest = header[5], header[7], header[8]
        sent = Batch(
            0, count - 1, count, attributes & CODEC_BITS, base_time, newest, *_NO_PRODUCER, NO_CRC, sent_batch.body
        )
        records = raw_records(sent, in_place=True)
        letters: list[RawRecord] = []
        for one in refused:
            record = records[one.number]
            headers = {
                "anabranch.flow": self._flow.name,
                "anabranch.source": self._flow.source,
                "anabranch.topic": place.topic,
                "anabranch.partition": str(place.partition),
                "anabranch.offset": str(one.offset),
                "anabranch.timestamp": str(record.timestamp),
                "anabranch.remote": place.remote,
                "anabranch.reason": str(one.reason),
            }
            letters.append(RawRecord(len(letters), now, with_headers(record.rest, headers)))
        return letters


def _attributes(sent_batch: InFlightBatch) -> int:
    return int(HEADER.unpack(sent_batch.head)[5])


def _size(letter: RawRecord) -> int:
    return len(letter.rest) + _FRONT


def _some(letters: Sequence[RawRecord], most: int) -> Sequence[RawRecord]:
    """Return as many letters as fit into `most` bytes; at least one."""
    size = 0
    for count, letter in enumerate(letters):
        size += _size(letter)
        if count and size > most:
            return letters[:count]
    return letters


def with_headers(rest: bytes | memoryview, headers: Mapping[str, str]) -> bytes:
    """Return key, value and headers of a record with more headers behind its own.

    Raises:
        ValueError: they are not laid out like that.
    """
    try:
        at = 0
        for _ in ("key", "value"):
            size, at = read(rest, at)
            at += max(0, size)
        count, behind = read(rest, at)
    except IndexError:
        message = "a record ends before its headers"
        raise ValueError(message) from None
    pieces: list[bytes | memoryview] = [rest[:at], signed(count + len(headers)), rest[behind:]]
    for name, value in headers.items():
        for text in (name.encode(), value.encode()):
            pieces += (signed(len(text)), text)
    return b"".join(pieces)


def _without(offsets: Sequence[int], sides: PartitionSides, known: CopyRecord | None) -> CopyRecord:
    """Return the copy record after records were put aside, which may be before any position."""
    return replace(sides.copy_record(), is_begun=False).with_what_is_known(known).without(*offsets)
