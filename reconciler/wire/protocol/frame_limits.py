"""How large a frame may be before and after a peer is known to be a broker.

`connection` calls it when a frame begins that it has not read whole. Pure.
"""

from __future__ import annotations

import mmap

FIRST = 2**20
"""Bytes of a frame until a connection is let in: answers to ApiVersions and to a login have some kilobytes."""

LARGEST_BATCH = 100 * 2**20
"""Bytes of a batch that a broker may have: its `socket.request.max.bytes` is as much unless that was raised.

A fetch is answered with its first batch whole however little was asked for (KIP-74), and other answers get as much:
librdkafka's `receive.message.max.bytes` is about the same.
"""

LEAST = 4
"""Bytes of the shortest frame: the id of the request that it answers."""

LONGEST_SETUP_MS = 10_000
"""Milliseconds until a connection and its TLS handshake are given up, however long requests may take: Kafka's own
`socket.connection.setup.timeout.ms`."""

USUAL_FETCH = 4 * 2**20
"""Usual limit of a fetch in bytes; a buffer of this size is made at once where the request's limit is unknown."""


def untouched(size: int) -> memoryview:
    """Return room for `size` bytes that takes no memory before something is written to it, page by page."""
    return memoryview(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
