"""Brokers that are others than before: under other addresses, or of another release than those beside them."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from reconciler.model.declared.cluster import Cluster
from reconciler.wire import ConnectionLost, FetchAsk, Loop, ProduceAsk, Wire
from reconciler.wire.net import manager
from tests.support.wire.pretended import FETCH, PRODUCE, PretendedBroker

TOPIC = uuid.uuid4()


@contextmanager
def speaking(port: int) -> Iterator[tuple[Loop, Wire]]:
    loop = Loop()
    wire = Wire(loop, Cluster("east", (f"127.0.0.1:{port}",)), "tests", 5.0)
    try:
        yield loop, wire
    finally:
        wire.close()
        loop.close()


async def fetched(wire: Wire, node: int) -> None:
    """Ask, which no pretended broker answers."""
    with pytest.raises(ConnectionLost):
        await wire.fetch(node, [FetchAsk("t", TOPIC, 0, 0, 0, 1_000)], 10, 1_000, committed=True)


async def produced(wire: Wire, node: int) -> None:
    with pytest.raises(ConnectionLost):
        await wire.produce(node, [ProduceAsk("t", TOPIC, 0, b"", b"x" * 100)], None)


def test_where_all_brokers_have_other_addresses_they_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The declared address stays, as of a load balancer before them."""
    monkeypatch.setattr(manager, "_CUT_OFF", 0.5)
    cluster: list[tuple[int, int]] = []
    with ExitStack() as stack:
        front, old, new = (stack.enter_context(PretendedBroker(lambda: cluster)) for _ in range(3))
        loop, wire = stack.enter_context(speaking(front.port))
        cluster[:] = [(1, old.port)]

        async def go() -> None:
            await wire.connect()
            await fetched(wire, 1)
            assert old.seen[-1] == (FETCH, 17)
            cluster[:] = [(1, new.port)]
            old.stop()
            for _ in range(100):
                # As a takeover does after each break.
                await wire.connect()
                await fetched(wire, 1)
                if new.seen:
                    break
                await loop.sleep(0.1)
            assert new.seen[-1] == (FETCH, 17)

        loop.run(go)


@pytest.mark.parametrize(("ask", "key", "old", "new"), [(fetched, FETCH, 12, 17), (produced, PRODUCE, 9, 13)])
def test_each_broker_is_asked_in_versions_that_it_knows(
    ask: Callable[[Wire, int], Awaitable[None]], key: int, old: int, new: int
) -> None:
    """In the middle of an upgrade the one that is asked first may know more than the others, or less."""
    cluster: list[tuple[int, int]] = []
    with ExitStack() as stack:
        upgraded = stack.enter_context(PretendedBroker(lambda: cluster))
        waiting = stack.enter_context(PretendedBroker(lambda: cluster, produce=9, fetch=12))
        cluster[:] = [(1, upgraded.port), (2, waiting.port)]
        loop, wire = stack.enter_context(speaking(upgraded.port))

        async def go() -> None:
            await wire.connect()
            for node, broker, version in ((2, waiting, old), (1, upgraded, new)):
                await wire.reach(node)
                await ask(wire, node)
                assert [version for kind, version in broker.seen if kind == key] == [version]

        loop.run(go)


def test_a_reader_asks_a_broker_that_it_meets_what_it_knows() -> None:
    """Nobody connects it before: a replica that is nearer is read from as soon as its leader names it."""
    cluster: list[tuple[int, int]] = []
    with ExitStack() as stack:
        upgraded = stack.enter_context(PretendedBroker(lambda: cluster))
        waiting = stack.enter_context(PretendedBroker(lambda: cluster, fetch=12))
        cluster[:] = [(1, upgraded.port), (2, waiting.port)]
        loop, wire = stack.enter_context(speaking(upgraded.port))

        async def go() -> None:
            await wire.connect()
            await fetched(wire, 2)
            assert waiting.seen[-1] == (FETCH, 12)

        loop.run(go)
