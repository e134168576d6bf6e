"""One question to a cluster over the replicator's own wire, from a test that is no coroutine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from reconciler.model.declared.cluster import Cluster
from reconciler.records.batch import Batch
from reconciler.replicator.copy.same_log import batch_at
from reconciler.wire import Loop, ProducerState, Wire

T = TypeVar("T")


def ask(cluster: Cluster, question: Callable[[Wire], Awaitable[T]], timeout: float = 10.0) -> T:
    """Return the answer of `question`, asked over a connection of its own."""
    loop = Loop()
    wire = Wire(loop, cluster, "tests", timeout)
    answers: list[T] = []

    async def put() -> None:
        await wire.connect()
        answers.append(await question(wire))

    try:
        loop.run(put)
    finally:
        wire.close()
        loop.close()
    return answers[0]


def producers(cluster: Cluster, topic: str, partition: int = 0) -> list[ProducerState]:
    """Return the producers that a broker remembers."""

    async def question(wire: Wire) -> list[ProducerState]:
        info = (await wire.topics([topic]))[topic]
        return await wire.producers(info.partitions[partition].node, topic, partition)

    return ask(cluster, question)


def batch_of(cluster: Cluster, topic: str, offset: int) -> Batch:
    """Return the batch of a topic's first partition that holds an offset."""

    async def question(wire: Wire) -> Batch | None:
        return await batch_at(wire, (await wire.topics([topic]))[topic], 0, offset)

    found = ask(cluster, question)
    assert found is not None
    return found
