"""What speaks at a port where no Kafka broker listens, told by how it begins.

`faults` asks of what librdkafka took for a size, the replicator's wire of what it read. Pure.
"""

from __future__ import annotations

_SHOWN = 40
# Of the size that a frame begins with, which may be all that is known.
_SIZE = 4
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


def is_known(first: bytes) -> bool:
    """Tell whether it is known what begins so; four bytes may be all there is."""
    return speaks_tls(first) or _kind(first) is not None


def who_answers(first: bytes) -> str:
    """Return how a peer that is no broker answers, in words.

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
