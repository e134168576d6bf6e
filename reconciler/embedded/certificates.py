"""Certificates for embedded clusters: a private authority, and what it signs, made within milliseconds.

Called by `cluster` and by tests. Keys are P-256, written as DER (X.509, RFC 5280; PKCS #8, RFC 5958) and PEM by the few
lines that this takes: a tool for it would have to be installed, and Java's own needs seconds and gives no PEM keys. It
is for clusters of one machine and of minutes: signing takes no care of what others could measure.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

# The curve P-256 (FIPS 186-4, D.1.2.3): field, order, and base point.
_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_SIZE = 32
_DAY = timedelta(days=1)
_LINE = 64
# The largest length that is written in one byte.
_SHORT = 0x7F

_Point = tuple[int, int] | None


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, both as PEM text.

    Attributes:
        pem: the certificate.
        key: its private key, without a password.
    """

    pem: str
    key: str = field(repr=False)

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Write `<name>.pem` and `<name>.key`, which only the owner may read, and return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
        certificate.write_text(self.pem)
        key.touch(mode=0o600)
        key.write_text(self.key)
        return certificate, key


class Authority:
    """A private certificate authority.

    Args:
        name: its common name.

    Attributes:
        pem: its own certificate.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._secret = new_secret()
        constraints = _extension("551d13", _sequence(_TRUE), critical=True)
        signs = _extension("551d0f", _tag(0x03, b"\x01\x06"), critical=True)
        self.pem = self._signed(name, self._secret, constraints + signs, 365 * _DAY)

    def issue(
        self, name: str, hosts: Sequence[str] = (), life: timedelta = _DAY * 30, secret: int | None = None
    ) -> Certificate:
        """Make a certificate.

        Args:
            name: its common name; brokers call its owner `User:CN=<name>`.
            hosts: names and IP addresses that a server with it may have.
            life: how long it is valid from now on; below 0 it has expired already.
            secret: the private key, a number that `new_secret` made; by default a new one.
        """
        secret = secret or new_secret()
        names = b"".join(_host(host) for host in hosts)
        extensions = _extension("551d11", _sequence(names)) if hosts else b""
        return Certificate(self._signed(name, secret, extensions, life), _pem("PRIVATE KEY", _private(secret)))

    def _signed(self, name: str, secret: int, extensions: bytes, life: timedelta) -> str:
        algorithm = _sequence(_oid("2a8648ce3d040302"))
        now = datetime.now(UTC)
        # Clocks may differ a little; what has expired has been valid for a day.
        validity = _sequence(_time(now + min(life, timedelta()) - _DAY), _time(now + life))
        own, signer = _key_id(_public(secret)), _key_id(_public(self._secret))
        extensions += _extension("551d0e", _tag(0x04, own)) + _extension("551d23", _sequence(_tag(0x80, signer)))
        body = _sequence(
            _tag(0xA0, _integer(2)),
            _integer(secrets.randbits(120) + 1),
            algorithm,
            _name(self._name),
            validity,
            _name(name),
            _sequence(_EC_KEY, _bits(_public(secret))),
            _tag(0xA3, _sequence(extensions)),
        )
        return _pem("CERTIFICATE", _sequence(body, algorithm, _bits(_signature(self._secret, body))))


def new_secret() -> int:
    """Return a new private key."""
    return secrets.randbelow(_N - 1) + 1


# --- the curve -------------------------------------------------------------------------------------------------------


def _add(a: _Point, b: _Point) -> _Point:
    if a is None or b is None:
        return a or b
    if a[0] == b[0]:
        if (a[1] + b[1]) % _P == 0:
            return None
        slope = (3 * a[0] * a[0] - 3) * pow(2 * a[1], -1, _P)
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, _P)
    x = (slope * slope - a[0] - b[0]) % _P
    return x, (slope * (a[0] - x) - a[1]) % _P


def _times(factor: int) -> tuple[int, int]:
    """Return the base point, taken `factor` times."""
    found: _Point = None
    step: _Point = _G
    while factor:
        if factor & 1:
            found = _add(found, step)
        step = _add(step, step)
        factor >>= 1
    assert found is not None, "a factor below the order never gives the point at infinity"
    return found


def _signature(secret: int, message: bytes) -> bytes:
    """Return an ECDSA signature with SHA-256 (FIPS 186-4, 6.4)."""
    digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
    while True:
        nonce = new_secret()
        r = _times(nonce)[0] % _N
        s = pow(nonce, -1, _N) * (digest + r * secret) % _N
        if r and s:
            return _sequence(_integer(r), _integer(s))


def _public(secret: int) -> bytes:
    x, y = _times(secret)
    return b"\x04" + x.to_bytes(_SIZE, "big") + y.to_bytes(_SIZE, "big")


# --- DER and PEM -----------------------------------------------------------------------------------------------------


def _tag(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size <= _SHORT:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content


def _sequence(*parts: bytes) -> bytes:
    return _tag(0x30, b"".join(parts))


def _integer(value: int) -> bytes:
    return _tag(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _bits(content: bytes) -> bytes:
    return _tag(0x03, b"\x00" + content)


def _oid(encoded: str) -> bytes:
    return _tag(0x06, bytes.fromhex(encoded))


_TRUE = _tag(0x01, b"\xff")
# An elliptic curve's key, on P-256.
_EC_KEY = _sequence(_oid("2a8648ce3d0201"), _oid("2a8648ce3d030107"))


def _name(common: str) -> bytes:
    return _sequence(_tag(0x31, _sequence(_oid("550403"), _tag(0x0C, common.encode()))))


def _time(moment: datetime) -> bytes:
    return _tag(0x17, moment.strftime("%y%m%d%H%M%SZ").encode())


def _host(host: str) -> bytes:
    try:
        return _tag(0x87, ipaddress.ip_address(host).packed)
    except ValueError:
        return _tag(0x82, host.encode())


def _extension(oid: str, value: bytes, critical: bool = False) -> bytes:
    return _sequence(_oid(oid), *([_TRUE] if critical else []), _tag(0x04, value))


def _key_id(public: bytes) -> bytes:
    return hashlib.sha1(public, usedforsecurity=False).digest()


def _private(secret: int) -> bytes:
    """Return a private key as PKCS #8."""
    key = _sequence(_integer(1), _tag(0x04, secret.to_bytes(_SIZE, "big")), _tag(0xA1, _bits(_public(secret))))
    return _sequence(_integer(0), _EC_KEY, _tag(0x04, key))


def _pem(what: str, content: bytes) -> str:
    text = base64.b64encode(content).decode()
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return "\n".join([f"-----BEGIN {what}-----", *lines, f"-----END {what}-----", ""])
