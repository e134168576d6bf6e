"""Whoever reads from a connection for as long as it lives has no turn of its own in the loop."""

from __future__ import annotations

import selectors
import socket
from typing import Any

from tests.support.wire.sockets import Pair
from tests.unit.wire.net.test_loop import Trace, lean, pass_time


class Reader:
    """Reads from a socket for as long as it is registered."""

    def __init__(self, net: Any, trace: Trace, sock: socket.socket) -> None:
        self._net, self._trace, self._sock = net, trace, sock
        sock.setblocking(False)
        self.task = net.call_soon(self._read)

    async def _read(self) -> None:
        try:
            await self._net.read_whenever(self._sock, self._on_readable)
        finally:
            self._trace("no more")

    def _on_readable(self) -> None:
        self._trace(self._sock.recv(1).decode())

    def close(self) -> None:
        self._net.unregister_event(self._sock, selectors.EVENT_READ | selectors.EVENT_WRITE)
        self._net.cancel(self.task)


def test_a_reader_reads_whatever_comes_until_it_is_closed(pair: Pair) -> None:
    net, (here, there) = lean(), pair
    trace = Trace(net)
    reader = Reader(net, trace, here)
    pass_time(net, 0.01)
    there.send(b"ab")
    pass_time(net, 0.01)
    there.send(b"c")
    pass_time(net, 0.01)
    assert trace.seen == ["a", "b", "c"]
    reader.close()
    there.send(b"d")
    pass_time(net, 0.01)
    assert trace.seen == ["a", "b", "c", "no more"]
    assert not net._pending_tasks
    net.close()


def test_who_waits_to_write_to_what_is_read_for_ever_is_woken(pair: Pair) -> None:
    net, (here, there) = lean(), pair
    trace = Trace(net)
    Reader(net, trace, here)
    pass_time(net, 0.01)

    async def writing() -> None:
        await net.wait_write(here)
        trace("may write")

    # Both at once, and the reader goes on behind it.
    there.send(b"a")
    net.call_soon(writing)
    pass_time(net, 0.01)
    there.send(b"b")
    pass_time(net, 0.01)
    assert sorted(trace.seen) == ["a", "b", "may write"]
    net.close()


def test_a_reader_may_close_another_that_has_something_to_read(pair: Pair) -> None:
    net, pairs = lean(), [pair, socket.socketpair()]
    trace = Trace(net)
    readers = [Reader(net, trace, here) for here, _ in pairs]
    seen: list[int] = []

    def closing(number: int) -> None:
        seen.append(number)
        pairs[number][0].recv(1)
        readers[1 - number].close()

    for number, reader in enumerate(readers):
        reader._on_readable = lambda number=number: closing(number)  # type: ignore[method-assign, misc]
    pass_time(net, 0.01)
    for _, there in pairs:
        there.send(b"a")
    pass_time(net, 0.02)
    assert len(seen) == 1
    assert trace.seen == ["no more"]
    net.close()
    for one in pairs[1]:
        one.close()
