"""Tokens for SASL OAUTHBEARER: kept, requested from an endpoint, or given by a user's class; the same for both clients.

`cluster` passes `current` to the code that opens connections. Tokens live in this process alone, and in no message.
"""

from __future__ import annotations

import base64
import binascii
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from reconciler.model.connection import token_provider
from reconciler.model.connection.references import Reference, settled
from reconciler.model.connection.security import OAuth, Security
from reconciler.model.connection.token_provider import TokenFault, no_token

# Seconds, of a token without a declared validity.
_UNKNOWN_LIFE = 300.0
# A token is used for this part of its life; librdkafka requests the next one after 80 %.
_USED = 0.75


@dataclass(frozen=True)
class Token:
    """A token, and when it ends.

    Attributes:
        text: what is sent to brokers.
        expires: seconds since 1970.
        renew: when the next one is requested, in seconds since 1970.
        extensions: what goes beside it.
    """

    text: str = field(repr=False)
    expires: float
    renew: float
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)


_guard = threading.Lock()
_fetched: dict[Security, Token] = {}


def current(security: Security, where: str) -> Token:
    """Return a token that is valid for a while.

    Args:
        security: with `oauth`.
        where: whose it is, for the error.

    Raises:
        EnvironmentFault: AB307 no token can be had, AB304 a reference cannot be resolved.
    """
    oauth = security.oauth
    assert oauth is not None, "only OAUTHBEARER has tokens"
    if oauth.token is not None:
        # It may have been replaced by a fresh one by now.
        kept = _kept(oauth.token.resolve(where).strip(), f"the token in {oauth.token}", where)
        return replace(kept, extensions=_extensions(oauth, where))
    with _guard:
        known = _fetched.get(security)
        if known is None or time.time() >= known.renew:
            given = _provided if oauth.token_provider is not None else _ask
            known = _fetched[security] = given(security, oauth, where)
        return known


def _extensions(oauth: OAuth, where: str) -> dict[str, str]:
    try:
        return token_provider.checked_extensions({name: settled(value, where) for name, value in oauth.extensions})
    except TokenFault as fault:
        raise no_token(where, str(fault), "correct security.oauth: extensions") from None


def _provided(_security: Security, oauth: OAuth, where: str) -> Token:
    """Call a user's provider; declared extensions replace those that it returns."""
    declared = oauth.token_provider_options
    options = tuple((name, settled(value, where)) for name, value in declared)
    looked_up = zip(options, declared, strict=True)
    hidden = frozenset(value for (_, value), (_, written) in looked_up if isinstance(written, Reference))
    own, now = _extensions(oauth, where), time.time()
    try:
        text, expires, extensions = token_provider.ask(oauth.token_provider or "", options, hidden)
    except TokenFault as fault:
        remedy = "install it wherever commands and tasks run, and check security.oauth: token-provider and its options"
        raise no_token(where, str(fault), remedy) from None
    return Token(text, expires, now + _USED * (expires - now), extensions | own)


def check(security: Security, where: str) -> None:
    """Make sure that the provider of tokens that is declared is installed here, if there is one.

    Raises:
        EnvironmentFault: AB307, it is not.
    """
    oauth = security.oauth
    if oauth is not None and oauth.token_provider is not None:
        try:
            token_provider.check(oauth.token_provider)
        except TokenFault as fault:
            raise no_token(
                where, str(fault), "install it wherever commands and tasks run, or correct its name"
            ) from None


def _kept(text: str, name: str, where: str) -> Token:
    now = time.time()
    expires = _expiry(text) or now + _UNKNOWN_LIFE
    if not text or expires <= now:
        found = "has expired" if text else "is empty"
        raise no_token(where, f"{name} {found}", "see to whatever keeps it fresh")
    return Token(text, expires, now)


def _expiry(text: str) -> float | None:
    """Return when a JSON web token expires (`exp`, RFC 7519, 4.1.4); None for other tokens."""
    parts = text.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (IndexError, KeyError, TypeError, ValueError, binascii.Error):
        return None


def _ask(security: Security, oauth: OAuth, where: str) -> Token:
    """Request a token from the endpoint."""
    # HTTP and TLS take long to import, and few clusters need it.
    from reconciler.model.connection.token_endpoint import ask  # noqa: PLC0415

    now = time.time()
    text, seconds = ask(security, oauth, where)
    life = (_expiry(text) or now + _UNKNOWN_LIFE) - now if seconds is None else seconds
    return Token(text, now + life, now + _USED * life, _extensions(oauth, where))
