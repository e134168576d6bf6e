"""A line between clients and brokers that can be cut, or be long and lose packets: TCP, on loopback.

What is lost is felt as TCP feels it: the bytes behind a lost packet wait until it was sent again. A cut line keeps
connections open and carries nothing, as when a cable is pulled; what was on its way is lost with the connections when
the ends give up.
"""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from types import TracebackType

from reconciler.embedded.ports import HOST, PortLease

_CHUNK = 64 * 1024
# How long a packet takes to be sent again, as Linux does at the least.
_AGAIN = 0.2
# Bytes of a packet, of which each may be lost.
_PACKET = 1448
_LOOK = 0.02
# Chunks of a connection that may be on their way.
_ON_THE_WAY = 256


class Relay:
    """One port for each broker.

    Args:
        brokers: how many.
        seed: decides which packets are lost.

    Attributes:
        ports: what clients connect to; set `upstream` to what the brokers listen on before they do.
        seconds: how long each byte takes one way.
        loss: the share of packets that are lost.
        heard: called with each connection's number and what its client sends, where somebody listens.
    """

    def __init__(self, brokers: int, seed: int = 0) -> None:
        self._lease = PortLease.take(brokers)
        self.ports: Sequence[int] = self._lease.ports
        self.upstream: Sequence[int] = ()
        self.seconds = 0.0
        self.loss = 0.0
        self.heard: Callable[[int, bytes], None] = lambda _connection, _data: None
        self._connections = count()
        self._chance = random.Random(seed)
        self._is_cut = False
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay", daemon=True)

    def __enter__(self) -> Relay:
        self._thread.start()
        for index, port in enumerate(self.ports):
            asyncio.run_coroutine_threadsafe(self._listen(index, port), self._loop).result(60)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._lease.release()

    def cut(self) -> None:
        """Carry nothing from now on."""
        self._is_cut = True

    def mend(self) -> None:
        """Carry everything again, on new connections: those from before are gone."""
        asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result(60)
        self._is_cut = False

    def go_on(self) -> None:
        """Carry everything again, over the connections from before."""
        self._is_cut = False

    async def _listen(self, index: int, port: int) -> None:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._join(index, reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        await asyncio.start_server(accept, HOST, port, limit=_CHUNK)

    async def _join(self, index: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there: asyncio.StreamWriter | None = None
        try:
            while self._is_cut:
                await asyncio.sleep(_LOOK)
            back, there = await asyncio.open_connection(HOST, self.upstream[index], limit=_CHUNK)
            heard = partial(self.heard, next(self._connections))
            ways = {
                asyncio.ensure_future(self._carry(*way)) for way in ((reader, there, heard), (back, writer, _ignore))
            }
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
        except OSError:
            return
        finally:
            for end in (writer, there):
                if end is not None:
                    end.transport.abort()

    async def _carry(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, heard: Callable[[bytes], None]
    ) -> None:
        """Carry one way: what is read leaves `seconds` later, in order."""
        on_its_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(_ON_THE_WAY)
        delivery = asyncio.ensure_future(self._deliver(on_its_way, writer))
        try:
            while True:
                data = await reader.read(_CHUNK)
                heard(data)
                await on_its_way.put((self._loop.time() + self.seconds, data))
                if not data:
                    break
            await delivery
        except OSError:
            return
        finally:
            delivery.cancel()

    async def _deliver(self, on_its_way: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter) -> None:
        earliest = 0.0
        while True:
            arrives, data = await on_its_way.get()
            earliest = max(earliest, arrives) + self._lost(len(data))
            await asyncio.sleep(max(0.0, earliest - self._loop.time()))
            while self._is_cut:
                await asyncio.sleep(_LOOK)
            if not data:
                return
            try:
                writer.write(data)
                await writer.drain()
            except OSError:
                # The other way ends, too, and with it all of this connection.
                writer.transport.abort()
                return

    def _lost(self, size: int) -> float:
        """Return for how long what is lost of some bytes holds up what stands behind it."""
        packets = -(-size // _PACKET)
        return _AGAIN if self.loss and self._chance.random() > (1 - self.loss) ** packets else 0.0

    async def _hang_up(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _end(self) -> None:
        await self._hang_up()
        await asyncio.sleep(0)


def _ignore(_data: bytes) -> None:
    """Listen to nobody."""
