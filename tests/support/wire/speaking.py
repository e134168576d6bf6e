"""A wire and the pretended broker that it speaks with, and direct requests over it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from reconciler.model.declared.cluster import Cluster
from reconciler.wire import Direct, Loop, ProduceAsk, Wire
from tests.support.wire.pretended import Asked, PretendedBroker

NODE = 1


class Scene:
    """A broker, and what was heard of it, in order."""

    def __init__(self, loop: Loop, wire: Wire, broker: PretendedBroker) -> None:
        self.loop, self.wire, self.broker = loop, wire, broker
        self.heard: list[str] = []
        self.answers: list[bytes] = []

    def fetching(self) -> Direct:
        direct = self.wire.direct_fetch(NODE)
        assert direct is not None
        return direct

    def writing(self) -> Direct:
        direct = self.wire.direct_produce(NODE, by_id=True)
        assert direct is not None
        return direct

    def send(self, direct: Direct, name: str) -> Asked:
        """Send a request, and return how it came to the broker."""

        def answered(data: memoryview) -> None:
            self.answers.append(bytes(data))
            self.heard.append(name)

        direct.send(name.encode(), answered, lambda error: self.heard.append(f"no {name}: {error}"))
        return self.broker.asked()

    def write(self, name: str) -> Asked:
        """Send a request of the usual kind."""
        ask = ProduceAsk("t", uuid.UUID(int=1), 0, b"batch")
        self.wire.produce(
            NODE,
            [ask],
            lambda error: self.heard.append(f"no {name}: {error}"),
            lambda _: self.heard.append(name),
        )
        return self.broker.asked()

    async def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < end, self.heard
            await self.loop.sleep(0.002)

    async def until_heard(self, *names: str) -> None:
        await self.until(lambda: len(self.heard) >= len(names))
        assert self.heard == list(names)


Story = Callable[[Scene], Awaitable[None]]


@contextmanager
def speaking(timeout: float, **known: Any) -> Iterator[Scene]:
    cluster: list[tuple[int, int]] = []
    loop = Loop()
    with PretendedBroker(lambda: cluster, keeps=True, **known) as broker:
        cluster[:] = [(NODE, broker.port)]
        wire = Wire(loop, Cluster("east", (f"127.0.0.1:{broker.port}",)), "tests", timeout)
        try:
            yield Scene(loop, wire, broker)
        finally:
            wire.close()
            loop.close()


def play(story: Story, timeout: float = 10.0, **known: int) -> None:
    with speaking(timeout, **known) as scene:

        async def go() -> None:
            await scene.wire.connect()
            await scene.wire.reach(NODE)
            await story(scene)

        scene.loop.run(go)
