"""Dead letters: records that the target will never take are put aside in a topic of their own, and the others go on.

`task` has them written where a flow declares `dlq`. A record is put aside before its place is passed over, so it is
never lost; who is stopped between the two puts it aside twice. Key, value and headers stay as they are; behind its
headers stand others that say where it came from and why it is here.

The layout of a record behind its deltas is Kafka's `DefaultRecord`: key, value, number of headers, headers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from reconciler.model.errors import AnabranchError
from reconciler.model.flow import Flow
from reconciler.model.runs import CopyRecord
from reconciler.model.status import PartitionState, Reason
from reconciler.replicator import reasons
from reconciler.replicator.batch import CODEC_BITS, HEADER, NO_CRC, Batch
from reconciler.replicator.channel import Channel
from reconciler.replicator.memory import Memory
from reconciler.replicator.parcel import Parcel
from reconciler.replicator.place import Sides
from reconciler.replicator.rewrite import Kept, kept, packed
from reconciler.replicator.varint import read, signed
from reconciler.replicator.wire import ConnectionLost, ErrorCode, ProduceAnswer, ProduceAsk, TopicInfo, Wire

_NO_PRODUCER = (-1, -1, -1)


class DeadLetters:
    """Puts records of one flow aside.

    Args:
        wire: to the target.
        flow: what declares the topic.
        memory: where it is kept what was put aside.
    """

    def __init__(self, wire: Wire, flow: Flow, memory: Memory) -> None:
        self._wire = wire
        self._flow = flow
        self._memory = memory

    async def put_aside(self, channel: Channel, parcel: Parcel, reason: Reason) -> None:
        """Write the only record of `parcel` as a dead letter, and let its channel go on behind it; or park that."""
        topic, partition = self._flow.dlq or "", channel.place.partition
        now = time.time()
        try:
            letter = self._letter(channel, parcel, reason, int(now * 1000))
            info = (await self._wire.topics([topic]))[topic]
            answer = await self._write(info, partition, letter)
            verdict = reasons.why_no_letter(topic, reason, letter.size, answer)
            if verdict is None:
                # A marker will stand in its place, and a later owner must not take it for somebody else's.
                sides = channel.sides
                assert sides is not None, "a channel that has sent something was open"
                await self._memory.change(channel.place, partial(_without, parcel.base_offset, sides))
        except (ConnectionLost, AnabranchError) as error:
            reason = Reason("AB220", str(error)) if isinstance(error, AnabranchError) else reasons.no_answer(error)
            channel.not_put_aside(PartitionState.OPENING, reason, time.monotonic())
        except ErrorCode as error:
            channel.not_put_aside(*reasons.why_refused(error, "WRITE", f"topic {topic}"), time.monotonic())
        except ValueError as error:
            channel.not_put_aside(
                PartitionState.PARKED, reasons.undecodable(parcel.base_offset, error), time.monotonic()
            )
        else:
            if verdict is None:
                channel.put_aside()
            else:
                channel.not_put_aside(*verdict, time.monotonic())

    async def _write(self, info: TopicInfo, partition: int, letter: Batch) -> ProduceAnswer:
        if info.error:
            raise ErrorCode(info.error)
        number = partition % len(info.partitions)
        leader = info.partitions[number]
        if leader.error:
            raise ErrorCode(leader.error)
        ask = ProduceAsk(info.name, info.topic_id, number, letter.body, letter.header(*_NO_PRODUCER))
        return await self._wire.write_one(leader.node, ask)

    def _letter(self, channel: Channel, parcel: Parcel, reason: Reason, now: int) -> Batch:
        """Return the dead letter of a parcel's only record."""
        place = channel.place
        header = HEADER.unpack(parcel.head)
        attributes, base_time, newest = header[5], header[7], header[8]
        sent = Batch(
            parcel.base_offset, 0, 1, attributes & CODEC_BITS, base_time, newest, *_NO_PRODUCER, NO_CRC, parcel.body
        )
        (record,) = kept(sent, in_place=True)
        rest = with_headers(
            record.rest,
            {
                "anabranch.flow": self._flow.name,
                "anabranch.source": self._flow.source,
                "anabranch.topic": place.topic,
                "anabranch.partition": str(place.partition),
                "anabranch.offset": str(parcel.base_offset),
                "anabranch.timestamp": str(record.timestamp),
                "anabranch.remote": place.remote,
                "anabranch.reason": str(reason),
            },
        )
        # A large one is not kept twice while it is compressed.
        del record
        return packed([Kept(0, now, rest)], attributes & CODEC_BITS)


def with_headers(rest: bytes | memoryview, headers: Mapping[str, str]) -> bytes:
    """Return key, value and headers of a record with more headers behind its own.

    Raises:
        ValueError: they are not laid out so.
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


def _without(offset: int, sides: Sides, known: CopyRecord | None) -> CopyRecord:
    """Return what is known of a copy after a record was put aside; that may come before any position."""
    return replace(sides.copy_record(), is_begun=False).with_what_is_known(known).without(offset)
