"""Which fields under `security:` go together.

The loader calls `check` for what has passed the schema, `clusters` calls `build` to make values of the model.
References are taken as they are: nothing is resolved here, and no value is repeated in a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from reconciler.declare.checks.lookup import lookup
from reconciler.declare.documents import codes, words
from reconciler.declare.documents.located import Located, SourcePlace
from reconciler.model.connection import hosts
from reconciler.model.connection.references import EXPECTED, Reference
from reconciler.model.connection.security import (
    BARE_MECHANISMS,
    INNER,
    PASSWORD_MECHANISMS,
    TLS_FIELDS,
    TLS_PROTOCOLS,
    Security,
)

Found = tuple[str, Located | None]
"""A field, and what is wrong with it; None where it is missing."""

_SASL = ("SASL_PLAINTEXT", "SASL_SSL")
_TLS = ("SSL", "SASL_SSL")
_OF_SASL = ("mechanism", "username", "password", "oauth", "kerberos")
_CREDENTIALS = ("username", "password")
# What belongs to which mechanism; the others take user names and passwords.
_SOURCES = {"OAUTHBEARER": "oauth", "GSSAPI": "kerberos"}
_OF_ENDPOINT = ("token-endpoint", "client-id", "client-secret")
# Of two fields: the first needs the second.
_PAIRS = (("certificate", "key"), ("key", "certificate"), ("key-password", "key"))


def check(place: SourcePlace, usable: Callable[[SourcePlace], bool]) -> Iterator[Located]:
    """Yield every field of the mapping at `place` that is missing, or does not go with the others.

    Args:
        place: of `security`, whether it is there or not.
        usable: whether the schema found nothing wrong with a value.
    """
    if isinstance(place.value, dict) and all(usable(place / key) for key in ("protocol", "mechanism")):
        # What is there and broken, or misspelt, has been reported.
        found = [(key, problem) for key, problem in _problems(place, place.value) if usable(place / key)]
        if missing := [key for key, problem in found if problem is None]:
            yield _missing(place, missing)
        yield from (problem for _, problem in found if problem is not None)


def _problems(place: SourcePlace, fields: dict[str, Any]) -> Iterator[Found]:
    """Yield fields that are missing or do not go with the others."""
    protocol = fields["protocol"]
    if protocol in _SASL:
        yield from _login(place, fields, fields.get("mechanism"))
    else:
        yield from _strangers(place, _OF_SASL, f"protocol {protocol}", f"protocol {words.either(_SASL)}")
    if protocol not in _TLS:
        yield from _strangers(place, TLS_FIELDS, f"protocol {protocol}", f"protocol {words.either(_TLS)}")
        return
    for one, other in _PAIRS:
        if one in fields and other not in fields:
            yield other, _missing(place, [other], f" beside {one}")
    yield from _versions(place, fields)


def _versions(place: SourcePlace, fields: dict[str, Any]) -> Iterator[Found]:
    """Yield what is wrong with versions of TLS, and with ciphers beside them."""
    spoken, newest = fields.get("tls-protocols", list(TLS_PROTOCOLS)), TLS_PROTOCOLS[-1]
    if isinstance(spoken, list) and spoken and newest not in spoken:
        message = f"expected {newest} among the versions; found {words.either(list(map(str, spoken)), 'and')} alone"
        remedy = (
            "add it: clients take the newest version that a broker has; to use another, let its listener offer that"
        )
        yield "tls-protocols", (place / "tls-protocols").problem(codes.WRONG_VALUE, message, remedy)
    elif spoken == [newest] and "ciphers" in fields:
        message = f"ciphers does not go with {newest} alone: they are suites of TLS 1.2"
        remedy = f"remove it, or add {TLS_PROTOCOLS[0]} to tls-protocols"
        yield "ciphers", (place / "ciphers").problem(codes.WRONG_VALUE, message, remedy, at_key=True)


def two_principals(clusters: Mapping[str, SourcePlace]) -> Iterator[Located]:
    """Yield the principals of clusters that a process could not be at once.

    Confluent's client takes tickets from the one cache of its process: of two principals of a realm the first would be
    used for both, without a word.

    Args:
        clusters: every declared cluster by alias.
    """
    first: dict[str, tuple[str, str]] = {}
    for alias, place in clusters.items():
        principal = _principal(place)
        if principal is None:
            continue
        other, expected = first.setdefault(principal.partition("@")[2], (alias, principal))
        if principal != expected:
            message = f"expected {expected}, as cluster {other} of the same realm has it; found {principal}"
            remedy = "declare one principal for all clusters of a realm: a process has one cache of tickets"
            yield (place / "security" / "kerberos" / "principal").problem(codes.TWO_PRINCIPALS, message, remedy)


def warnings(place: SourcePlace, addresses: Iterable[str]) -> Iterator[Located]:
    """Yield what others on the network may read of a cluster's secrets, or pass for.

    Args:
        place: of `security`, which has passed the schema and `check`, whether it is there or not.
        addresses: of the cluster's brokers, `host:port` each.
    """
    fields = cast("dict[str, Any]", place.value or {})
    mechanism, oauth = fields.get("mechanism"), fields.get("oauth") or {}
    is_far = not all(hosts.is_loopback(hosts.host_of(address)) for address in addresses)
    if fields.get("protocol") == "SASL_PLAINTEXT" and mechanism in BARE_MECHANISMS and is_far:
        what = "token" if mechanism == "OAUTHBEARER" else "password"
        message = f"SASL_PLAINTEXT with {mechanism} sends the {what} without encryption"
        remedy = "use protocol SASL_SSL; or, for a password, a mechanism that does not send it: SCRAM-SHA-512"
        yield (place / "protocol").problem(codes.LOGIN_IN_CLEAR, message, remedy)
    if fields.get("verify-hostname") is False:
        message = (
            "certificates of brokers are taken whatever names they have: any that ca has signed passes for a broker"
        )
        remedy = "give brokers certificates with the names that clients use, and remove it"
        yield (place / "verify-hostname").problem(codes.ANY_HOSTNAME, message, remedy)
    endpoint = str(oauth.get("token-endpoint") or "")
    if hosts.leaves_in_clear(endpoint):
        message = "the client's secret goes to this endpoint without encryption, and the token comes back so"
        yield (place / "oauth" / "token-endpoint").problem(codes.ENDPOINT_IN_CLEAR, message, "use https")


def _principal(place: SourcePlace) -> str | None:
    value: object = place.value
    for key in ("security", "kerberos", "principal"):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def build(place: SourcePlace) -> Security:
    """Return what the mapping at `place` declares, if there is one; it has passed the schema and `check`."""
    fields = cast("dict[str, Any]", place.value or {})
    inner = {key: kind(**_values(place / key, fields[key])) for key, kind in INNER.items() if key in fields}
    return Security(**_values(place, fields) | inner)


def _values(place: SourcePlace, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        key.replace("-", "_"): (
            tuple((name, lookup(place / key / name)) for name in value)
            if isinstance(value, dict)
            else _value(place / key)
        )
        for key, value in fields.items()
    }


def _value(place: SourcePlace) -> Any:
    if words.takes_reference(place.path):
        return lookup(place)
    return tuple(place.value) if isinstance(place.value, list) else place.value


def _login(place: SourcePlace, fields: dict[str, Any], mechanism: str | None) -> Iterator[Found]:
    """Yield what is wrong with how clients log in."""
    meant = mechanism or next((one for one, key in _SOURCES.items() if key in fields), None)
    source = _SOURCES.get(meant or "")
    needed = (*(() if mechanism else ("mechanism",)), *((source,) if source else _CREDENTIALS))
    yield from ((key, None) for key in needed if key not in fields)
    if source and meant:
        yield from _strangers(place, _CREDENTIALS, meant, f"mechanism {words.either(PASSWORD_MECHANISMS)}")
    if meant:
        for other, key in _SOURCES.items():
            if key != source:
                yield from _strangers(place, (key,), f"mechanism {meant}", f"mechanism {other}")
    if source == "oauth" and source in fields:
        yield from ((source, found) for found in _source_of_tokens(place / source, fields[source]))


def _source_of_tokens(place: SourcePlace, fields: Any) -> Iterator[Located]:
    if not isinstance(fields, dict):
        return
    given = next((key for key in ("token", "token-provider") if key in fields), None)
    options = fields.get("token-provider-options", {})
    if options and given != "token-provider":
        yield _missing(place, ["token-provider"], " beside token-provider-options")
    for name, value in options.items() if isinstance(options, dict) else ():
        if words.names_credentials((name,)) and not isinstance(
            lookup(place / "token-provider-options" / name), Reference
        ):
            message = f"expected {EXPECTED} for {name}; found {words.found(value, secret=True)}"
            yield (place / "token-provider-options" / name).problem(codes.BAD_REFERENCE, message, "keep it there")
    if given is not None:
        others = [*_OF_ENDPOINT, "scope", *(("token-provider",) if given == "token" else ())]
        instead = f"token-endpoint in place of {given}"
        yield from (problem for _, problem in _strangers(place, others, given, instead))
    elif missing := [key for key in _OF_ENDPOINT if key not in fields]:
        yield _missing(place, missing)


def _strangers(place: SourcePlace, keys: Iterable[str], other: str, instead: str) -> Iterator[tuple[str, Located]]:
    for key in keys:
        if key in cast("dict[str, Any]", place.value):
            remedy = f"remove it, or use {instead}"
            yield key, (place / key).problem(codes.WRONG_VALUE, f"{key} does not go with {other}", remedy, at_key=True)


def _missing(place: SourcePlace, keys: Sequence[str], beside: str = "") -> Located:
    said = words.either(keys, "and")
    message = f"{said} {'are' if len(keys) > 1 else 'is'} missing{beside}"
    return place.problem(codes.MISSING, message, f"add {said}")
