"""Orders, payments and users as a shop would produce them, continuously, on embedded clusters."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from reconciler.model.base.errors import EnvironmentFault, Problem, together
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import calls
from reconciler.state.confluent.faults import in_words

PARTITIONS = 3
_BACKLOG = 3_000
_PER_SECOND = 400
_TIMEOUT = 15.0
# librdkafka would write its own log into the story.
_QUIET = {"log_level": "2"}
_SHORTEST_WAIT = 0.01
_FULL_SECONDS = 0.1
_PRODUCTS = ("espresso beans 1 kg", "moka pot", "grinder", "filter papers", "milk jug", "cup, blue", "cup, white")
_CURRENCIES = ("EUR", "USD", "GBP")

Record = tuple[str, str, dict[str, object]]


@dataclass(frozen=True)
class Shop:
    """Where one shop writes.

    Attributes:
        cluster: its cluster.
        topics: which of `orders`, `payments` and `users` it writes.
    """

    cluster: Cluster
    topics: tuple[str, ...]


def records(seed: int, topics: Sequence[str]) -> Iterator[Record]:
    """Yield topic, key and value without end; the same for the same seed."""
    chance = random.Random(seed)
    number = 0
    while True:
        number += 1
        order = f"o-{seed:02d}-{number:08d}"
        user = f"u-{chance.randrange(500):04d}"
        lines = [
            {
                "product": chance.choice(_PRODUCTS),
                "quantity": chance.randint(1, 3),
                "cents": chance.randrange(250, 9900),
            }
            for _ in range(chance.randint(1, 4))
        ]
        total = sum(int(str(line["quantity"])) * int(str(line["cents"])) for line in lines)
        currency = chance.choice(_CURRENCIES)
        made: list[Record] = [
            ("orders", user, {"order": order, "user": user, "lines": lines, "currency": currency}),
            ("payments", order, {"order": order, "cents": total, "currency": currency, "method": "card"}),
        ]
        if number % 10 == 0:
            made.append(("users", user, {"user": user, "name": f"Customer {user[2:]}", "newsletter": number % 3 == 0}))
        yield from (record for record in made if record[0] in topics)


def create_topics(shop: Shop) -> None:
    """Create the shop's topics.

    Raises:
        EnvironmentFault: AB341, the cluster refuses.
    """
    admin = AdminClient(shop.cluster.librdkafka() | _QUIET)
    new = [NewTopic(topic, PARTITIONS, 1) for topic in shop.topics]
    made = admin.create_topics(new, operation_timeout=_TIMEOUT, request_timeout=_TIMEOUT)
    for topic, future in made.items():
        try:
            # No limit here: the request has one of its own.
            future.result()
        except KafkaException as error:
            problem = Problem("AB341", f"{shop.cluster.where}, topic {topic}", in_words(error.args[0]), "")
            raise EnvironmentFault(problem) from None


class Traffic:
    """Produces for some shops in the background, a backlog first and then at a steady pace."""

    def __init__(self, shops: Sequence[Shop]) -> None:
        self._shops = shops
        self._ending = threading.Event()
        self._faults: list[EnvironmentFault] = []
        self._threads = [
            threading.Thread(target=self._produce, args=(shop, seed), name=f"shop-{shop.cluster.alias}", daemon=True)
            for seed, shop in enumerate(shops, start=1)
        ]

    def start(self) -> None:
        """Begin to produce."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop and wait until everything produced is stored.

        Raises:
            EnvironmentFault: AB341, a cluster did not take it.
        """
        self._ending.set()
        for thread in self._threads:
            thread.join()
        if self._faults:
            raise together(self._faults)

    def _produce(self, shop: Shop, seed: int) -> None:
        try:
            self._write(shop, seed)
        except calls.RAISED as error:
            problem = Problem("AB341", shop.cluster.where, in_words(calls.cause_of(error)), "")
            self._faults.append(EnvironmentFault(problem))

    def _write(self, shop: Shop, seed: int) -> None:
        """Produce until the end. Raises KafkaException."""
        producer = Producer(shop.cluster.librdkafka() | _QUIET | {"linger.ms": 20, "enable.idempotence": True})
        began = time.monotonic()
        for count, (topic, key, value) in enumerate(records(seed, shop.topics)):
            headers = [("shop", shop.cluster.alias.encode()), ("schema", b"v1")]
            while True:
                try:
                    producer.produce(topic, key=key, value=json.dumps(value), headers=headers)
                    break
                except BufferError:
                    # Its queue is full, as on a busy machine: what is in it goes first.
                    producer.poll(_FULL_SECONDS)
            producer.poll(0)
            ahead = began + max(0, count - _BACKLOG) / _PER_SECOND - time.monotonic()
            if self._ending.wait(ahead if ahead > _SHORTEST_WAIT else 0):
                break
        producer.flush(_TIMEOUT)
