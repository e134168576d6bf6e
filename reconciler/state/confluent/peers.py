"""Names the protocol of a port where no Kafka broker listens, from the first bytes of its answer. Pure.

`faults` calls it with the four bytes that librdkafka took for a size, `wire.net` with what it has read.
"""

from __future__ import annotations

_SHOWN = 40
# Bytes of a frame's size field, which may be all that is known.
_SIZE = 4
# The first bytes by protocol: of a greeting, or of the answer to a request that the server cannot parse.
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
    """Return whether an answer to bytes without TLS is a TLS record."""
    return first.startswith(_TLS)


def is_known(first: bytes) -> bool:
    """Return whether the protocol is known; `first` may have four bytes only."""
    return speaks_tls(first) or _kind(first) is not None


def who_answers(first: bytes) -> str:
    """Return the answer of a peer that is no broker, in words.

    Args:
        first: the bytes that it sent first.
    """
    line = first.split(b"\r", 1)[0].split(b"\n", 1)[0][:_SHOWN]
    shown = line.decode("latin-1").encode("unicode_escape").decode("ascii")
    kind = _kind(first) or "with no Kafka frame"
    return f'it answers {kind} ("{shown}")'


def _kind(first: bytes) -> str | None:
    def begins(start: bytes) -> bool:
        return first.startswith(start) or (len(first) == _SIZE and start.startswith(first))

    return next((words for starts, words in _GREETINGS if any(map(begins, starts))), None)
