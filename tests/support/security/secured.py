"""What tests of secured clusters have in common: tokens that brokers take, and a record by each client."""

from __future__ import annotations

import base64
import json
import time

from confluent_kafka import Producer

from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import clients
from reconciler.wire import EARLIEST, LATEST, ProduceAsk, Wire
from tests.support.records.batches import build, some
from tests.support.wire.wires import ask

SECONDS = 300.0


def token(user: str) -> str:
    """Return a token that nobody has signed, as the broker takes them."""
    now = time.time()
    parts = ({"alg": "none"}, {"sub": user, "iat": now, "exp": now + 600})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def write_and_read(cluster: Cluster, topic: str) -> tuple[int, int]:
    """Write a record with each client, then return where the partition begins and ends."""
    producer = clients.make(Producer, cluster)
    producer.produce(topic, value=b"one")
    assert producer.flush(SECONDS) == 0

    async def question(wire: Wire) -> tuple[int, int]:
        info = (await wire.topics([topic]))[topic]
        node = info.partitions[0].node
        (answer,) = await wire.produce(node, [ProduceAsk(topic, info.topic_id, 0, build(some(1)))], None)
        assert answer.error == 0
        return await wire.offset(node, topic, 0, EARLIEST), await wire.offset(node, topic, 0, LATEST)

    return ask(cluster, question)
