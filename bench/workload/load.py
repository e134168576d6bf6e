"""Produces the topic that is raced over: orders as JSON with a key, dealt evenly to the partitions. Reads it, too.

`race` calls it, `soak` and `plant` use its records. Several processes produce at once, so that gigabytes take a minute.
The producers are idempotent, so the topic holds exactly the records asked for. A topic of one-record batches is not
produced but planted: see `plant`.

What decides the size of the batches, and with it the work of every competitor: `linger.ms=20`, `batch.size` as asked,
and producers that are never idle, so that batches fill up. `segments` tells what came of it.
"""

from __future__ import annotations

import json
import multiprocessing
import random
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import count as counted

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

PROCESSES = 2
LINGER_MS = 20
FLUSH_SECONDS = 120
READ_SECONDS = 30
SMALLEST = 80
_SHORT = 150
_ODD_EVERY = 7
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# Prime, so that each partition meets all of the values whatever its number; larger than a batch, so that no batch
# holds a record twice and compresses better than real data.
_POOL = 8191
_POLL_EVERY = 1000
# How many keys of a partition may be written again, and how often that happens.
_RECENT = 1024
_HALF = 0.5

Odd = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]


@dataclass(frozen=True)
class Load:
    """What is produced.

    Attributes:
        records: how many records, all partitions together.
        size: bytes of a record's key and value.
        partitions: how many partitions.
        codec: Kafka's `compression.type`.
        batch_bytes: Kafka's `batch.size`.
        alone: whether every record is a batch of its own, as from a producer that never waits.
        odd: whether some records have no key, no value, or headers of which two have one name.
        overwritten: whether every second record has the key of a recent one, for a topic that is compacted.
    """

    records: int
    size: int = 250
    partitions: int = 8
    codec: str = "none"
    batch_bytes: int = 256 * 1024
    alone: bool = False
    odd: bool = False
    overwritten: bool = False

    def __post_init__(self) -> None:
        if self.size < SMALLEST:
            message = f"size: expected at least {SMALLEST} bytes, found {self.size}"
            raise ValueError(message)
        if self.alone and self.odd:
            message = "batches of one record are planted, each with key and value"
            raise ValueError(message)


def produce(client: Mapping[str, str], topic: str, load: Load) -> None:
    """Produce the whole load and return when all of it is acknowledged.

    Args:
        client: how a librdkafka client connects.
        topic: an existing topic with the load's partitions.
        load: what to produce.

    Raises:
        KafkaException: a record was not delivered.
    """
    share, rest = divmod(load.records, PROCESSES)
    counts = [share + (number < rest) for number in range(PROCESSES)]
    # A fresh interpreter each: a fork of a process with Kafka clients inherits their locks but not their threads.
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        jobs = [pool.submit(_produce, dict(client), topic, load, count, seed) for seed, count in enumerate(counts)]
        for job in jobs:
            job.result()


def _produce(client: dict[str, str], topic: str, load: Load, count: int, seed: int) -> None:
    config = {
        **client,
        "enable.idempotence": True,
        "linger.ms": LINGER_MS,
        "batch.size": load.batch_bytes,
        "batch.num.messages": max(1, load.batch_bytes // SMALLEST),
        "compression.type": load.codec,
        "queue.buffering.max.messages": 200_000,
        "log_level": 2,
    }
    producer = Producer(config)
    pool: list[Odd] = [(key, value, []) for key, value in orders(load.size, seed)]
    if load.odd:
        pool = [oddly(number, key, value) for number, (key, value) in enumerate(orders(load.size, seed))]
    keys = overwriting(seed, load.partitions) if load.overwritten else None
    for number in range(count):
        key, value, headers = pool[number % _POOL]
        key = key if keys is None else next(keys)
        while True:
            try:
                producer.produce(topic, value, key, number % load.partitions, headers=headers)
                break
            except BufferError:
                producer.poll(0.05)
        if number % _POLL_EVERY == 0:
            producer.poll(0)
    if left := producer.flush(FLUSH_SECONDS):
        message = f"{left} records of {topic} were not delivered in {FLUSH_SECONDS} s"
        raise KafkaException(message)


def read(client: Mapping[str, str], topic: str, load: Load) -> int:
    """Read a topic from its beginning until as many records as the load has were seen; return their number.

    Args:
        client: how a librdkafka client connects.
        topic: a topic that holds at least as many records.
        load: how many records and partitions; a request asks each partition for the bytes of one batch.
    """
    config = {
        **client,
        "group.id": f"{topic}-reader",
        "enable.auto.commit": False,
        "fetch.message.max.bytes": load.batch_bytes,
        "log_level": 2,
    }
    consumer = Consumer(config)
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(load.partitions)])
    seen = 0
    try:
        while seen < load.records and (messages := consumer.consume(_POLL_EVERY, READ_SECONDS)):
            seen += len(messages)
    finally:
        consumer.close()
    return seen


def orders(size: int, seed: int) -> list[tuple[bytes, bytes]]:
    """Return keys and values of orders; each pair has `size` bytes together.

    Half of a value is text that repeats from order to order, the other half is random, as in real topics.
    """
    dice = random.Random(seed)
    pool = []
    for _ in range(_POOL):
        key = f"order-{dice.randrange(10**10):010d}".encode()
        order = {
            "customer": f"c-{dice.randrange(10**6):06d}",
            "currency": dice.choice(("EUR", "USD", "GBP")),
            "amount": dice.randrange(100, 100_000),
            "status": dice.choice(("placed", "paid", "shipped")),
            "reference": "",
        }
        if size < _SHORT:
            order = {"amount": order["amount"], "reference": ""}
        missing = size - len(key) - len(json.dumps(order))
        order["reference"] = f"{dice.getrandbits(missing * 4):0{missing}x}"
        pool.append((key, json.dumps(order).encode()))
    return pool


def overwriting(seed: int, partitions: int) -> Iterator[bytes]:
    """Yield keys for records that are dealt to partitions in turn; half of them have one of the partition's last keys.

    They are as long as those of orders.
    """
    dice = random.Random(seed)
    recent: list[deque[bytes]] = [deque(maxlen=_RECENT) for _ in range(partitions)]
    for number in counted():
        known = recent[number % partitions]
        if known and dice.random() < _HALF:
            yield dice.choice(known)
        else:
            known.append(f"o{seed}-{number:013d}".encode())
            yield known[-1]


def oddly(number: int, key: bytes, value: bytes) -> Odd:
    """Return a record as topics of the world have some: without key, without value, with one header name twice."""
    match number % _ODD_EVERY:
        case 0:
            return key, value, [("trace", b"%d" % number), ("empty", None), ("trace", b"again")]
        case 1:
            return None, value, []
        case 2:
            return key, None, []
    return key, value, []
