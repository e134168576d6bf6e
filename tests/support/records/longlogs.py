"""Logs of millions of records, each unlike all others, written in seconds: batches from a form, over the wire."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain

from reconciler.model.declared.cluster import Cluster
from reconciler.records.batch import CHECKED_FROM, HEADER, HEADER_SIZE, LOG_OVERHEAD, MAGIC
from reconciler.records.checksum import crc32c
from reconciler.records.codecs import pack
from reconciler.records.varint import signed
from reconciler.wire import ProduceAnswer, ProduceAsk, Wire
from tests.support.records.batches import NONE, Content, build
from tests.support.wire.wires import ask

PER_BATCH = 1_000
START = 1_700_000_000_000
# Of one connection the broker answers requests in their order.
_UNDER_WAY = 4

Row = list[tuple[int, bytes]]
"""One batch for each of some partitions."""

Change = Callable[[list[Content]], object]


def content(partition: int, number: int) -> Content:
    """Return the record with a number in a partition, counted from 0."""
    value = b'{"order": %010d, "amount": 12345678}' % number
    headers = (("trace", b"%010d" % number),)
    return Content(START + number, b"o%d-%010d" % (partition, number), value, headers)


def contents(partition: int, first: int, count: int) -> list[Content]:
    return [content(partition, number) for number in range(first, first + count)]


def batch(partition: int, first: int, count: int = PER_BATCH, codec: int = NONE) -> bytes:
    """Return records from a number on as one batch at offset 0, the same bytes as `build` makes of their contents."""
    numbers = range(first, first + count)
    body = _form(partition, count) % tuple(chain.from_iterable(zip(numbers, numbers, numbers, strict=True)))
    packed = pack(codec, body)
    length = HEADER_SIZE - LOG_OVERHEAD + len(packed)
    rest = codec, count - 1, START + first, START + first + count - 1, -1, -1, -1, count
    checked = HEADER.pack(0, length, 0, MAGIC, 0, *rest)[CHECKED_FROM:] + packed
    return HEADER.pack(0, length, 0, MAGIC, crc32c(checked), *rest)[:CHECKED_FROM] + checked


@cache
def _form(partition: int, count: int) -> bytes:
    """Return the records of a batch with room for three numbers in each: in its key, its value and its header."""
    found = []
    for delta in range(count):
        one = content(partition, 0)
        assert one.key is not None
        assert one.value is not None
        fields = b"".join(signed(len(field)) + field for field in (one.key, one.value))
        headers = signed(1) + signed(5) + b"trace" + signed(10) + b"%010d" % 0
        body = b"\x00" + signed(delta) + signed(delta) + fields + headers
        record = (signed(len(body)) + body).replace(b"%", b"%%")
        found.append(record.replace(b"0000000000", b"%010d"))
    return b"".join(found)


def pieces(
    partition: int, records: int, change: Change | None = None, at: int = 0, framed: tuple[int, int] = (PER_BATCH, NONE)
) -> Iterator[bytes]:
    """Yield the batches of a partition.

    Args:
        partition: its number.
        records: how many, of whole batches.
        change: what is done to the records from the batch on in which a number is, to those of two batches.
        at: that number.
        framed: how many records are in a batch, and its codec.
    """
    size, codec = framed
    changed = range(at // size * size, min(records, (at // size + 2) * size)) if change is not None else range(0)
    for first in range(0, records, size):
        if change is not None and first == changed.start:
            some = contents(partition, changed.start, len(changed))
            change(some)
            yield from (build(part) for part in (some[:size], some[size:]) if part)
        elif first not in changed:
            yield batch(partition, first, size, codec)


def write(cluster: Cluster, topic: str, partitions: Sequence[Iterator[bytes]]) -> None:
    """Write batches to the partitions of a topic on one broker, and wait until all of them are acknowledged."""

    async def question(wire: Wire) -> None:
        info = (await wire.topics([topic]))[topic]
        node = info.partitions[0].node
        pending: deque[Awaitable[list[ProduceAnswer]]] = deque()
        for row in _rows(partitions):
            asks = [ProduceAsk(topic, info.topic_id, number, data) for number, data in row]
            pending.append(wire.produce(node, asks, None))
            if len(pending) == _UNDER_WAY:
                _check(await pending.popleft())
        for one in pending:
            _check(await one)

    ask(cluster, question, timeout=60)


def _rows(partitions: Sequence[Iterator[bytes]]) -> Iterator[Row]:
    """Yield the next batch of each partition that has more."""
    while row := [(number, data) for number, one in enumerate(partitions) if (data := next(one, None)) is not None]:
        yield row


def _check(answers: Iterable[ProduceAnswer]) -> None:
    failed = [answer for answer in answers if answer.error]
    assert not failed, failed
