"""How a cluster is reached: references to secrets, and one table that maps `security:` to both Kafka clients.

`declare` makes these values; whoever opens a connection asks for client settings here. A secret's value is looked up at
that moment, lives in the returned mapping alone, and is never part of a `repr`, a specification or a message.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, get_args

from reconciler.model.errors import EnvironmentFault, Problem
from reconciler.model.files import Unreadable, read_text

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"]
PROTOCOLS: tuple[str, ...] = get_args(Protocol)
MECHANISMS: tuple[str, ...] = get_args(Mechanism)
# Those that send what lets anybody in who has read it: a password (RFC 4616) or a token (RFC 7628).
BARE_MECHANISMS = ("PLAIN", "OAUTHBEARER")
# Those that a user name and a password belong to.
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

_ENV = "env:"
# More than line breaks and marks before what a file holds.
_BEGIN = 1024
_LONGEST_SECRET = 2**20
_REFERENCE = re.compile(r"env:(?P<env>[A-Za-z_][A-Za-z0-9_]*)|file:(?P<file>/\S+)")


@dataclass(frozen=True)
class SecretRef:
    """A place where one secret value is kept: an environment variable or a file.

    Attributes:
        scheme: `env` or `file`.
        name: the variable's name, or the file's absolute path.
    """

    scheme: Literal["env", "file"]
    name: str

    @classmethod
    def parse(cls, text: str) -> SecretRef:
        """Read `env:NAME` or `file:/absolute/path`.

        Raises:
            ValueError: the text is neither; it is not repeated in the message, as it may be the secret itself.
        """
        found = _REFERENCE.fullmatch(text)
        if found is None:
            message = "not a reference: expected env:NAME or file:/absolute/path"
            raise ValueError(message)
        if found["env"]:
            return cls("env", found["env"])
        return cls("file", found["file"])

    def __str__(self) -> str:
        return f"{self.scheme}:{self.name}"

    def resolve(self, where: str) -> str:
        """Return the secret's value.

        Args:
            where: whose secret it is, for the error.

        Raises:
            EnvironmentFault: AB304, the variable is unset, the file cannot be read, or either is empty.
        """
        if self.scheme == "env":
            value = os.environ.get(self.name)
            if value:
                return value
            # An empty one is that of a secret that CI does not have; what then follows would say something else.
            found = "is not set" if value is None else "is empty"
            raise EnvironmentFault(
                Problem("AB304", where, f"environment variable {self.name} {found}", f"set {self.name}")
            )
        try:
            # Editors of Windows put a mark before text, which is no part of a secret.
            secret = read_text(Path(self.name), _LONGEST_SECRET).replace("\r\n", "\n").rstrip("\r\n")
        except OSError as error:
            raise self._unreadable(where, error.strerror) from None
        except Unreadable as error:
            raise self._unreadable(where, f"it {error}") from None
        if not secret:
            raise self._empty(where)
        return secret

    def check(self, where: str) -> None:
        """Make sure that there is something; a file may hold anything but nothing.

        Raises:
            EnvironmentFault: AB304, the variable is unset, the file cannot be read, or either is empty.
        """
        if self.scheme == "env":
            self.resolve(where)
            return
        try:
            with Path(self.name).open("rb") as file:
                begin = file.read(_BEGIN)
        except OSError as error:
            raise self._unreadable(where, error.strerror) from None
        if not begin.removeprefix(codecs.BOM_UTF8).strip(b"\r\n"):
            raise self._empty(where)

    def _empty(self, where: str) -> EnvironmentFault:
        return EnvironmentFault(
            Problem("AB304", where, f"{self.name} is empty", "write there what it is to hold, or correct the path")
        )

    def _unreadable(self, where: str, reason: str | None) -> EnvironmentFault:
        return EnvironmentFault(
            Problem("AB304", where, f"cannot read {self.name}: {reason}", "create it or correct the path")
        )


@dataclass(frozen=True)
class OAuth:
    """Where the token of SASL OAUTHBEARER comes from: an endpoint that is asked for one, or a reference.

    Attributes:
        token: where somebody keeps a fresh token, as a file that is replaced now and then; the others are None then.
        token_endpoint: URL that gives tokens for client credentials (RFC 6749, 4.4).
        client_id: who asks there.
        client_secret: with which secret.
        scope: what is asked for, if anything in particular.
    """

    token: SecretRef | None = None
    token_endpoint: str | None = None
    client_id: str | None = None
    client_secret: SecretRef | None = None
    scope: str | None = None


@dataclass(frozen=True)
class Kerberos:
    """Whom clients are with SASL GSSAPI, and whom they expect.

    Attributes:
        principal: the client's, `mirror@EXAMPLE.COM`, or without a realm in the default one.
        keytab: a file with its keys; None takes the tickets that the environment has, which somebody keeps fresh.
        service: the first part of the brokers' principals.
    """

    principal: str
    keytab: SecretRef | None = None
    service: str = "kafka"

    @property
    def short_name(self) -> str:
        """What brokers call the principal, unless `sasl.kerberos.principal.to.local.rules` says otherwise."""
        return self.principal.partition("@")[0].partition("/")[0]


@dataclass(frozen=True)
class Security:
    """How clients authenticate to a cluster, and how they know it.

    Attributes:
        protocol: Kafka's `security.protocol`.
        mechanism: the SASL mechanism, with protocols that have one.
        username: whom clients log in as, with a password; or `env:NAME` of who says that.
        password: where that is kept.
        ca: PEM file of the authorities whose certificates are trusted; None for those of the system.
        certificate: PEM file of the client's own certificate, for mutual TLS.
        key: PEM file of the certificate's private key.
        key_password: where the key's password is kept, if it has one.
        oauth: where tokens come from.
        kerberos: whom clients are, with GSSAPI.
    """

    protocol: Protocol = "PLAINTEXT"
    mechanism: Mechanism | None = None
    username: str | None = None
    password: SecretRef | None = None
    ca: SecretRef | None = None
    certificate: SecretRef | None = None
    key: SecretRef | None = None
    key_password: SecretRef | None = None
    oauth: OAuth | None = None
    kerberos: Kerberos | None = None

    @property
    def has_tls(self) -> bool:
        """Whether connections are encrypted."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def has_sasl(self) -> bool:
        """Whether clients log in."""
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    @property
    def principal(self) -> str:
        """How messages name whom clients log in as; never a secret."""
        if self.username:
            said = os.environ.get(self.username.removeprefix(_ENV)) if self.username.startswith(_ENV) else None
            return f"user {said or self.username}"
        if self.kerberos is not None:
            return f"principal {self.kerberos.principal}"
        if self.oauth is not None:
            return (
                f"client {self.oauth.client_id}" if self.oauth.client_id else f"the owner of token {self.oauth.token}"
            )
        return f"the owner of certificate {self.certificate.name}" if self.certificate else "an anonymous user"

    @property
    def user(self) -> str | None:
        """What brokers call whom clients log in as, where the declaration tells."""
        if self.kerberos is not None:
            return self.kerberos.short_name
        return None if self.username is None or self.username.startswith(_ENV) else self.username

    def username_at(self, where: str) -> str | None:
        """Return whom this process logs in as, with a password.

        Args:
            where: of which cluster, for the error.

        Raises:
            EnvironmentFault: AB304, the variable that says it is not set.
        """
        if self.username is None or not self.username.startswith(_ENV):
            return self.username
        return SecretRef.parse(self.username).resolve(where)

    @property
    def references(self) -> tuple[SecretRef, ...]:
        """Everything that is looked up when a connection is made."""
        parts = [part for part in (self, *self._inner.values()) if part is not None]
        values = [getattr(part, known.name) for part in parts for known in fields(part)]
        if self.username is not None and self.username.startswith(_ENV):
            values.append(SecretRef.parse(self.username))
        return tuple(value for value in values if isinstance(value, SecretRef))

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as JSON types, references as text; `from_json` is its inverse."""
        inner = {name: None if part is None else _said(part) for name, part in self._inner.items()}
        return _said(self) | inner

    @property
    def _inner(self) -> dict[str, OAuth | Kerberos | None]:
        return {name: getattr(self, name) for name in INNER}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Security:
        """Read what `to_json` returned.

        Raises:
            KeyError, TypeError, ValueError: the value is of another shape.
        """
        inner = {name: None if value[name] is None else kind(**_read(value[name])) for name, kind in INNER.items()}
        return cls(**_read(value) | inner)


INNER: dict[str, type[OAuth | Kerberos]] = {"oauth": OAuth, "kerberos": Kerberos}
"""The fields of `Security` that have fields of their own."""

_REFERENCES = ("password", "ca", "certificate", "key", "key_password", "token", "client_secret", "keytab")


def _said(part: Security | OAuth | Kerberos) -> dict[str, Any]:
    values = {known.name: getattr(part, known.name) for known in fields(part)}
    return {name: str(value) if isinstance(value, SecretRef) else value for name, value in values.items()}


def _read(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: SecretRef.parse(one) if name in _REFERENCES and one is not None else one for name, one in value.items()
    }


# One table for both clients: what each calls a field of `Security`. Host names are verified by both.
_LIBRDKAFKA, _KAFKA_PYTHON = 0, 1
_TABLE = {
    "protocol": ("security.protocol", "security_protocol"),
    "mechanism": ("sasl.mechanism", "sasl_mechanism"),
    "username": ("sasl.username", "sasl_plain_username"),
    "password": ("sasl.password", "sasl_plain_password"),
    "ca": ("ssl.ca.location", "ssl_cafile"),
    "certificate": ("ssl.certificate.location", "ssl_certfile"),
    "key": ("ssl.key.location", "ssl_keyfile"),
    "key_password": ("ssl.key.password", "ssl_password"),
}
_VERIFY: tuple[dict[str, Any], ...] = (
    {"ssl.endpoint.identification.algorithm": "https"},
    {"ssl_check_hostname": True},
)
_FILES = ("ca", "certificate", "key")


def librdkafka_settings(security: Security, where: str) -> dict[str, Any]:
    """Return the settings that confluent-kafka needs for `security`, without those of OAUTHBEARER.

    Raises:
        EnvironmentFault: AB304, a secret cannot be resolved.
    """
    settings = _settings(security, where, _LIBRDKAFKA)
    if security.kerberos is not None:
        settings |= _tickets(security.kerberos, where)
    return settings


def _tickets(kerberos: Kerberos, where: str) -> dict[str, Any]:
    """Return where librdkafka takes its tickets; it has `kinit` fetch them, into the environment's cache."""
    settings = {"sasl.kerberos.service.name": kerberos.service, "sasl.kerberos.principal": kerberos.principal}
    if kerberos.keytab is None:
        # Somebody else keeps the tickets fresh: `kinit` is never run (CONFIGURATION.md of librdkafka).
        return settings | {"sasl.kerberos.min.time.before.relogin": 0}
    kerberos.keytab.check(where)
    return settings | {"sasl.kerberos.keytab": kerberos.keytab.name}


def kafka_python_settings(security: Security, where: str) -> dict[str, Any]:
    """Return the settings that kafka-python's connections need for `security`, without those of OAUTHBEARER and GSSAPI.

    Raises:
        EnvironmentFault: AB304, a secret cannot be resolved.
    """
    settings = _settings(security, where, _KAFKA_PYTHON)
    user = settings.get("sasl_plain_username")
    if user and (security.mechanism or "").startswith("SCRAM-"):
        # As RFC 5802 has it, which the library leaves out.
        settings["sasl_plain_username"] = user.replace("=", "=3D").replace(",", "=2C")
    return settings


def _settings(security: Security, where: str, client: int) -> dict[str, Any]:
    settings: dict[str, Any] = dict(_VERIFY[client]) if security.has_tls else {}
    for name, names in _TABLE.items():
        value = security.username_at(where) if name == "username" else getattr(security, name)
        if isinstance(value, SecretRef):
            if name in _FILES:
                # The clients read files of certificates by themselves, and take any comments in them.
                value.check(where)
                value = value.name
            else:
                value = value.resolve(where)
        if value is not None:
            settings[names[client]] = value
    return settings
