"""How large a frame may be before and after a peer is known to be a broker, and what else speaks where none does.

`connection` looks here when a frame begins that it has not read whole. Pure.
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

USUAL_FETCH = 4 * 2**20
"""Bytes that a fetch asks for as a rule; room for so many is made at once where it is not known what was asked for."""

_SHOWN = 40
# How what speaks at a port begins, and what it is: each of them greets, or answers a request that it does not
# understand, so.
_GREETINGS: tuple[tuple[tuple[bytes, ...], str], ...] = (
    ((b"HTTP/", b"<html", b"<HTML", b"<!DOC", b"<!doc"), "as an HTTP server does"),
    ((b"SSH-",), "as an SSH server does"),
    ((b"220 ", b"220-", b"500 ", b"501 ", b"502 ", b"421 "), "as an SMTP or FTP server does"),
    ((b"-ERR", b"-DENIED", b"-NOAUTH"), "as a Redis server does"),
    ((b"E\x00\x00",), "as a PostgreSQL server does"),
)
# How a TLS record begins: an alert or a handshake, and the major version (RFC 8446, 5.1).
_TLS = (b"\x15\x03", b"\x16\x03")


def speaks_tls(first: bytes | bytearray) -> bool:
    """Tell whether a peer that was spoken to without TLS answers with it."""
    return first.startswith(_TLS)


def who_answers(first: bytes) -> str:
    """Return how a peer that is no broker answers, in words.

    Args:
        first: the bytes that it sent first.
    """
    line = first.split(b"\r", 1)[0].split(b"\n", 1)[0][:_SHOWN]
    shown = line.decode("latin-1").encode("unicode_escape").decode("ascii")
    kind = next((words for starts, words in _GREETINGS if first.startswith(starts)), "with no Kafka frame")
    return f'it answers {kind} ("{shown}")'


def untouched(size: int) -> memoryview:
    """Return room for `size` bytes that takes no memory before something is written to it, page by page."""
    return memoryview(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
