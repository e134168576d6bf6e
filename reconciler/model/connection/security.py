"""How a cluster is reached, and one table that maps `security:` to both Kafka clients.

`declare` makes these values; client settings for connections are made here. A secret's value is looked up at
that moment, lives in the returned mapping alone, and is never part of a `repr`, a specification or a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from reconciler.model.connection.references import PRINCIPAL, Reference, Text, read, said, settled

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"]
PROTOCOLS: tuple[str, ...] = get_args(Protocol)
MECHANISMS: tuple[str, ...] = get_args(Mechanism)
TLS_PROTOCOLS = ("TLSv1.2", "TLSv1.3")
# Those that send a credential that can be replayed: a password (RFC 4616) or a token (RFC 7628).
BARE_MECHANISMS = ("PLAIN", "OAUTHBEARER")
# Those that a user name and a password belong to.
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


# Marks a field of a later release: with its default it is no part of digests, which stay those of earlier releases.
_LATER: Mapping[str, bool] = {"later": True}


@dataclass(frozen=True)
class OAuth:
    """Where the token of SASL OAUTHBEARER comes from: an endpoint, or a reference.

    Attributes:
        token: where a fresh token is kept, as a file that is replaced now and then; the others are None then.
        token_endpoint: URL that gives tokens for client credentials (RFC 6749, 4.4).
        client_id: the client that requests the token.
        client_secret: its secret.
        scope: that is requested, if any.
        token_provider: name of the entry point of a class of users that gives tokens; the others before are None then.
        token_provider_options: what the class is made with.
        extensions: what brokers get beside the token (RFC 7628).
    """

    token: Reference | None = None
    token_endpoint: Text | None = None
    client_id: Text | None = None
    client_secret: Reference | None = None
    scope: Text | None = None
    token_provider: str | None = field(default=None, metadata=_LATER)
    token_provider_options: tuple[tuple[str, Text], ...] = field(default=(), metadata=_LATER)
    extensions: tuple[tuple[str, Text], ...] = field(default=(), metadata=_LATER)


@dataclass(frozen=True)
class Kerberos:
    """The principals of clients and brokers with SASL GSSAPI.

    Attributes:
        principal: the client's, `mirror@EXAMPLE.COM`, or without a realm in the default one.
        keytab: a file with its keys; None takes the tickets of the environment, which are renewed there.
        service: the first part of the brokers' principals.
    """

    principal: Text
    keytab: Reference | None = None
    service: str = "kafka"

    @property
    def short_name(self) -> str | None:
        """What brokers call the principal, unless `sasl.kerberos.principal.to.local.rules` maps it.

        None where it is not declared.
        """
        if isinstance(self.principal, Reference):
            return None
        return self.principal.partition("@")[0].partition("/")[0]

    def principal_at(self, where: str) -> str:
        """Return the principal; `where` names the cluster, for the error.

        Raises:
            EnvironmentFault: AB304, it cannot be looked up, or is none.
        """
        return settled(self.principal, where, PRINCIPAL)


@dataclass(frozen=True)
class Security:
    """How clients authenticate to a cluster, and how they verify it.

    Attributes:
        protocol: Kafka's `security.protocol`.
        mechanism: the SASL mechanism, with protocols that have one.
        username: the user that clients log in as, with a password.
        password: where that is kept.
        ca: where the certificates (PEM) of the authorities are that are trusted; None for those of the system.
        certificate: where the client's own certificate (PEM) is, for mutual TLS.
        key: where the certificate's private key (PEM) is.
        key_password: where the key's password is kept, if it has one.
        oauth: where tokens come from.
        kerberos: the principal of clients, with GSSAPI.
        verify_hostname: whether brokers' certificates must have the names that brokers are connected by.
        tls_protocols: the versions of TLS that are allowed, of `TLS_PROTOCOLS`, the newest among them; empty for all.
        ciphers: the cipher suites of TLS 1.2 that are offered, as OpenSSL calls them; empty for the libraries' own.
    """

    protocol: Protocol = "PLAINTEXT"
    mechanism: Mechanism | None = None
    username: Text | None = None
    password: Reference | None = None
    ca: Reference | None = None
    certificate: Reference | None = None
    key: Reference | None = None
    key_password: Reference | None = None
    oauth: OAuth | None = None
    kerberos: Kerberos | None = None
    verify_hostname: bool = field(default=True, metadata=_LATER)
    tls_protocols: tuple[str, ...] = field(default=(), metadata=_LATER)
    ciphers: tuple[str, ...] = field(default=(), metadata=_LATER)

    @property
    def newest_tls_alone(self) -> bool:
        """Whether TLS 1.3 alone is allowed."""
        return self.tls_protocols == TLS_PROTOCOLS[-1:]

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
        """The name of the client's principal in messages; never a secret."""
        if self.username:
            return f"user {said(self.username)}"
        if self.kerberos is not None:
            return f"principal {said(self.kerberos.principal, PRINCIPAL)}"
        if self.oauth is not None and self.oauth.token_provider is not None:
            return f"the owner of tokens of provider {self.oauth.token_provider}"
        if self.oauth is not None:
            return (
                f"client {said(self.oauth.client_id)}"
                if self.oauth.client_id
                else f"the owner of token {self.oauth.token}"
            )
        return f"the owner of certificate {self.certificate.shown}" if self.certificate else "an anonymous user"

    @property
    def user(self) -> str | None:
        """The client's user name at brokers, where it is declared."""
        if self.kerberos is not None:
            return self.kerberos.short_name
        return None if isinstance(self.username, Reference) else self.username

    def username_at(self, where: str) -> str | None:
        """Return the user name with which this process logs in with a password.

        Args:
            where: of which cluster, for the error.

        Raises:
            EnvironmentFault: AB304, it cannot be looked up.
        """
        return None if self.username is None else settled(self.username, where)

    @property
    def references(self) -> tuple[Reference, ...]:
        """Everything that is looked up when a connection is made."""
        inner = [part for name in INNER if (part := getattr(self, name)) is not None]
        values = [getattr(part, known.name) for part in (self, *inner) for known in fields(part)]
        pairs = () if self.oauth is None else (*self.oauth.token_provider_options, *self.oauth.extensions)
        return tuple(value for value in (*values, *(one for _, one in pairs)) if isinstance(value, Reference))

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Security:
        """Read what `dataclasses.asdict` returned.

        Raises:
            KeyError, TypeError, ValueError: the value is of another shape.
        """
        made = _read(value)
        made |= {name: None if value[name] is None else kind(**_read(value[name])) for name, kind in INNER.items()}
        lists = {one.name for one in fields(cls) if str(one.type).startswith("tuple")}
        return cls(**made | {name: tuple(value[name]) for name in lists})

    def for_digest(self) -> dict[str, Any]:
        """Return what `dataclasses.asdict` returns, without later fields that have their defaults."""
        value = _without_later(self)
        return value | {name: None if (part := getattr(self, name)) is None else _without_later(part) for name in INNER}


INNER: dict[str, type[OAuth | Kerberos]] = {"oauth": OAuth, "kerberos": Kerberos}
"""The fields of `Security` that have fields of their own."""


TLS_FIELDS = ("ca", "certificate", "key", "key-password", "verify-hostname", "tls-protocols", "ciphers")
"""The fields of `security` that go with TLS alone."""

REFERENCES = frozenset(
    one.name.replace("_", "-")
    for kind in (Security, *INNER.values())
    for one in fields(kind)
    if str(one.type).startswith("Reference")
)
"""The fields that hold secrets or files: topology files have references there and no values."""

_PAIRS = ("token_provider_options", "extensions")


def _without_later(part: Security | OAuth | Kerberos) -> dict[str, Any]:
    value = asdict(part)
    for one in fields(part):
        if one.metadata.get("later") and getattr(part, one.name) == one.default:
            del value[one.name]
    return value


def _read(value: Mapping[str, Any]) -> dict[str, Any]:
    # Pairs are the only lists of lists.
    return {
        name: tuple((key, read(part)) for key, part in one) if name in _PAIRS else read(one)
        for name, one in value.items()
    }


# One table for both clients: what each calls a field of `Security`.
_LIBRDKAFKA, _KAFKA_PYTHON = 0, 1
_TABLE = {
    "protocol": ("security.protocol", "security_protocol"),
    "mechanism": ("sasl.mechanism", "sasl_mechanism"),
    "username": ("sasl.username", "sasl_plain_username"),
    "password": ("sasl.password", "sasl_plain_password"),
}
# What librdkafka calls a PEM file, and the text of one. Connections of kafka-python get a context of
# `state/confluent/tls`.
_PEM = {
    "ca": ("ssl.ca.location", "ssl.ca.pem"),
    "certificate": ("ssl.certificate.location", "ssl.certificate.pem"),
    "key": ("ssl.key.location", "ssl.key.pem"),
}
# Of those with keys that both sides share beforehand, which no client here has.
_NO_SUITE = "PSK-AES256-GCM-SHA384"


def librdkafka_settings(security: Security, where: str) -> dict[str, Any]:
    """Return the settings that confluent-kafka needs for `security`, without those of OAUTHBEARER.

    Raises:
        EnvironmentFault: AB304, a reference cannot be resolved.
    """
    settings = _settings(security, where, _LIBRDKAFKA) | dict(_tls(security, where))
    if security.kerberos is not None:
        settings |= _tickets(security.kerberos, where)
    return settings


def _tls(security: Security, where: str) -> Iterator[tuple[str, Any]]:
    if not security.has_tls:
        return
    yield "ssl.endpoint.identification.algorithm", "https" if security.verify_hostname else "none"
    if security.newest_tls_alone:
        # It has no setting for versions. Without a suite of TLS 1.2 that could be had, TLS 1.3 is left, whose suites
        # are another list.
        yield "ssl.cipher.suites", _NO_SUITE
    elif security.ciphers:
        yield "ssl.cipher.suites", ":".join(security.ciphers)
    for name, (location, text) in _PEM.items():
        reference: Reference | None = getattr(security, name)
        if reference is None:
            continue
        if reference.path is None:
            yield text, reference.resolve(where)
        else:
            # It reads files by itself, and takes any comments in them.
            reference.check(where)
            yield location, reference.path
    if security.key_password is not None:
        yield "ssl.key.password", security.key_password.resolve(where)


def _tickets(kerberos: Kerberos, where: str) -> dict[str, Any]:
    """Return where librdkafka takes its tickets; it has `kinit` fetch them, into the environment's cache."""
    principal = kerberos.principal_at(where)
    settings = {"sasl.kerberos.service.name": kerberos.service, "sasl.kerberos.principal": principal}
    if kerberos.keytab is None:
        # Others keep the tickets fresh: `kinit` is never run (CONFIGURATION.md of librdkafka).
        return settings | {"sasl.kerberos.min.time.before.relogin": 0}
    kerberos.keytab.check(where)
    return settings | {"sasl.kerberos.keytab": kerberos.keytab.name}


def kafka_python_settings(security: Security, where: str) -> dict[str, Any]:
    """Return the settings that kafka-python's connections need for `security`, without those of OAUTHBEARER and GSSAPI.

    What TLS needs is no part of them: it is in the context that connections get.

    Raises:
        EnvironmentFault: AB304, a reference cannot be resolved.
    """
    settings = _settings(security, where, _KAFKA_PYTHON)
    user = settings.get("sasl_plain_username")
    if user and (security.mechanism or "").startswith("SCRAM-"):
        # As RFC 5802 has it, which the library leaves out.
        settings["sasl_plain_username"] = user.replace("=", "=3D").replace(",", "=2C")
    return settings


def _settings(security: Security, where: str, client: int) -> dict[str, Any]:
    values = {
        "protocol": security.protocol,
        "mechanism": security.mechanism,
        "username": security.username_at(where),
        "password": None if security.password is None else security.password.resolve(where),
    }
    return {_TABLE[name][client]: value for name, value in values.items() if value is not None}
