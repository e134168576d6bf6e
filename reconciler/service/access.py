"""Access to the paths: bearer tokens with a role each, or one role for all callers on this machine."""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from reconciler.model.base.errors import DeclaredInputError, EnvironmentFault, Problem
from reconciler.model.connection.references import EXPECTED, Reference

Role = Literal["read", "operate"]
"""`operate` may also do what `read` may."""
ROLES: tuple[str, ...] = get_args(Role)

_OPTION = "--token"
_WRITTEN = re.compile(r"(?P<role>[^:=]*)(?::(?P<name>[^:=]*))?=(?P<reference>.*)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9._@-]{1,100}")
# RFC 6750, 2.1: what may stand behind "Bearer". A shorter one is soon guessed.
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{16,}=*")


class Caller(NamedTuple):
    """The caller of a request.

    Attributes:
        name: as journals and the audit log have it.
        role: what they may do.
    """

    name: str
    role: Role


@dataclass(frozen=True)
class Tokens:
    """The tokens that are accepted.

    Attributes:
        callers: token and caller of each; empty where none is asked for.
        otherwise: the caller where none is asked for.
    """

    callers: Sequence[tuple[str, Caller]]
    otherwise: Caller

    @property
    def are_needed(self) -> bool:
        """Whether a caller without a token is refused."""
        return bool(self.callers)

    def caller(self, authorization: str | None) -> Caller | None:
        """Return the caller; None where the token is missing or wrong.

        Args:
            authorization: the header of that name.
        """
        if not self.callers:
            return self.otherwise
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        given = token.strip().encode()
        # All are compared, so that the time an answer takes gives nothing of the tokens away.
        found = [caller for known, caller in self.callers if hmac.compare_digest(known.encode(), given)]
        return found[0] if found else None


def tokens_of(options: Iterable[str], otherwise: Caller) -> Tokens:
    """Read the values of `--token`: `ROLE[:NAME]=REFERENCE`, such as `operate:ops=env:OPS_TOKEN`.

    Args:
        options: the values.
        otherwise: the caller where there are none.

    Raises:
        DeclaredInputError: AB732, a value has another form, or two tokens are equal.
        EnvironmentFault: AB304, what a reference names is not there; AB732, it holds no token.
    """
    found: list[tuple[str, Caller]] = []
    for option in options:
        token, caller = _token(option)
        if any(known == token for known, _ in found):
            message = f"the token of {caller.name} is that of another caller, too"
            raise DeclaredInputError(Problem("AB732", _OPTION, message, "give each caller a token of its own"))
        found.append((token, caller))
    return Tokens(found, otherwise)


def _token(option: str) -> tuple[str, Caller]:
    read = _WRITTEN.fullmatch(option)
    name = read["name"] if read else None
    if read is None or read["role"] not in ROLES or (name is not None and _NAME.fullmatch(name) is None):
        # What was given may be the token itself.
        message = "expected ROLE[:NAME]=REFERENCE; found something else, which is not shown: it may be a secret"
        remedy = f"write for instance {_OPTION} operate:ops=env:OPS_TOKEN; roles are {', '.join(ROLES)}"
        raise DeclaredInputError(Problem("AB732", _OPTION, message, remedy))
    role: Role = "operate" if read["role"] == "operate" else "read"
    where = f"{_OPTION} {role}{f':{name}' if name else ''}"
    try:
        reference = Reference.parse(read["reference"])
    except ValueError:
        message = f"expected {EXPECTED} behind the =; found something else, which is not shown: it may be a secret"
        remedy = "keep the token in a variable or a file, and name that"
        raise DeclaredInputError(Problem("AB732", where, message, remedy)) from None
    token = reference.resolve(where)
    if _TOKEN.fullmatch(token) is None:
        message = f"{reference} holds no token: expected 16 or more letters, digits and -._~+/"
        raise EnvironmentFault(Problem("AB732", where, message, "make one with: openssl rand -hex 32"))
    return token, Caller(name or role, role)
