"""Tokens for SASL OAUTHBEARER from classes of users: found by their entry point, called with care.

`tokens` calls it, in every process that connects. Whatever a class does wrong becomes a `TokenFault` with a readable
message, which has no value of its options that was looked up.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from typing import Protocol, TypeAlias

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.base.installed import NotInstalled, load, told

GROUP = "anabranch.token_providers"

Options: TypeAlias = tuple[tuple[str, str], ...]

# RFC 7628, 3.1: what stands between key and value, and at the end of both, must not be in either.
EXTENSION = re.compile(r"(?!auth$)[A-Za-z]+")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")
_TOKEN = re.compile(r"[\x21-\x7e]+")


class TokenProvider(Protocol):
    """What a class must have. It is made once in each process for the same options, a mapping of texts.

    One more method is not required, `extensions(self) -> Mapping[str, str]`: what brokers get beside the token.
    """

    def token(self) -> tuple[str, float]:
        """Return a token that brokers take, and when it ends, in seconds since 1970.

        It is requested when the one before has had three quarters of its life, while connections wait for it: it
        should take a few seconds at most.
        """


class TokenFault(Exception):
    """A provider cannot be used, or gives no token; the message gives the reason."""


def no_token(where: str, message: str, remedy: str) -> EnvironmentFault:
    """Return the error (AB307) that no token can be had, wherever it was to come from."""
    return EnvironmentFault(Problem("AB307", where, message, remedy))


_made: dict[tuple[str, Options], TokenProvider] = {}


def ask(name: str, options: Options, hidden: frozenset[str]) -> tuple[str, float, dict[str, str]]:
    """Return a token, when it ends in seconds since 1970, and what goes beside it.

    Args:
        name: of the entry point.
        options: handed to the class.
        hidden: values of options that no message may have.

    Raises:
        TokenFault: there is no such provider, it fails, or what it gives is no token, or one that has ended.
    """
    try:
        provider = _provider(name, options)
        text, expires = _checked(name, provider.token())
        extensions = getattr(provider, "extensions", None)
        return text, expires, checked_extensions({} if extensions is None else extensions())
    except NotInstalled as fault:
        raise TokenFault(str(fault)) from None
    except TokenFault:
        raise
    # A provider may do anything, and call sys.exit too.
    except (Exception, SystemExit) as error:
        message = f"token provider {name} fails: {_without(told(error), hidden)}"
        raise TokenFault(message) from None


def check(name: str) -> None:
    """Make sure that there is such a provider.

    Raises:
        TokenFault: there is none, or it cannot be imported.
    """
    try:
        load(GROUP, name, "token provider")
    except NotInstalled as fault:
        raise TokenFault(str(fault)) from None


def checked_extensions(found: object) -> dict[str, str]:
    """Return extensions that may go beside a token.

    Raises:
        TokenFault: they are no mapping of names to texts, or have what RFC 7628 does not allow; values are not shown.
    """
    if not isinstance(found, Mapping):
        message = f"expected extensions as a mapping of texts; found {type(found).__name__}"
        raise TokenFault(message)
    for name, value in found.items():
        if not isinstance(name, str) or EXTENSION.fullmatch(name) is None:
            message = "expected names of extensions of letters alone, and none called auth (RFC 7628)"
            raise TokenFault(message)
        if not isinstance(value, str) or _VALUE.fullmatch(value) is None:
            message = f"expected printable ASCII as the value of extension {name} (RFC 7628), found something else"
            raise TokenFault(message)
    return dict(found)


def _provider(name: str, options: Options) -> TokenProvider:
    if (name, options) not in _made:
        _made[name, options] = load(GROUP, name, "token provider")(dict(options))
    return _made[name, options]


def _checked(name: str, given: object) -> tuple[str, float]:
    match given:
        case (str(text), int() | float() as expires) if _TOKEN.fullmatch(text) and math.isfinite(expires):
            pass
        case _:
            message = f"token provider {name} gives something else than a token and when it ends, in seconds since 1970"
            raise TokenFault(message)
    left = expires - time.time()
    if left <= 0:
        message = f"token provider {name} gives a token that ended {-left:.0f} s ago"
        raise TokenFault(message)
    if left > _LONGEST:
        message = f"token provider {name} gives a token for {left:.0f} s: is its end in milliseconds?"
        raise TokenFault(message)
    return text, float(expires)


# Ten years: more are milliseconds that were taken for seconds.
_LONGEST = 10 * 366 * 86_400.0


def _without(text: str, hidden: frozenset[str]) -> str:
    for value in sorted(hidden, key=len, reverse=True):
        text = text.replace(value, "…")
    return text
