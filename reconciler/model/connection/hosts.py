"""Hosts: which a machine allows to be connected to, and which are the machine itself.

A topology file sets where credentials go; `ANABRANCH_ALLOWED_HOSTS`, set where commands run, bounds that. `Cluster` and
the Spark engine check here before any secret is looked up and anything is connected to.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from reconciler.model.base.errors import EnvironmentFault, Problem

VARIABLE = "ANABRANCH_ALLOWED_HOSTS"
"""The variable that names what is allowed. No file does, as a pull request that changes an address changes files."""

_NAME = re.compile(r"(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?")
_CODE = "AB309"


def host_of(address: str) -> str:
    """Return the host of `host:port` or `[v6]:port`, in lower case, without a port and without the dot of a root."""
    host = address.rpartition(":")[0] if ":" in address else address
    return host.strip("[]").rstrip(".").lower()


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, by its name (RFC 6761, 6.3) or address (RFC 1122, RFC 4291)."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def leaves_in_clear(url: str) -> bool:
    """Return whether what is sent to a URL crosses a network without encryption."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def problem(
    where: str, addresses: Iterable[str], urls: Iterable[str] = (), environ: Mapping[str, str] = os.environ
) -> Problem | None:
    """Return the problem that something may not be connected to from here; None where all of it may.

    Args:
        where: whose addresses these are.
        addresses: `host:port` each.
        urls: of `http` and `https`.
        environ: with the variable; where it is not set, or empty, everything is allowed.
    """
    allowed = re.split(r"[,\s]+", environ.get(VARIABLE, "").strip(", \t\r\n"))
    if allowed == [""]:
        return None
    for pattern in allowed:
        if not _is_pattern(pattern):
            message = f"expected host names, *.domains and networks in {VARIABLE}; found {pattern}"
            return Problem(_CODE, where, message, f"correct {VARIABLE}; until then nothing is connected to")
    hosts = {address: host_of(address) for address in addresses}
    hosts |= {_without_query(url): (urlsplit(url).hostname or "").rstrip(".") for url in urls}
    others = [said for said, host in hosts.items() if not any(_covers(pattern, host) for pattern in allowed)]
    if not others:
        return None
    message = f"{', '.join(others)} may not be connected to from here: {VARIABLE} allows {', '.join(allowed)}"
    remedy = "correct the address, or have it added to that variable, which is set for this machine or pipeline"
    return Problem(_CODE, where, message, remedy)


def check(where: str, addresses: Iterable[str], urls: Iterable[str] = ()) -> None:
    """Make sure that addresses may be connected to from here; arguments are those of `problem`.

    Raises:
        EnvironmentFault: AB309, at least one may not, or the variable cannot be read.
    """
    if (found := problem(where, addresses, urls)) is not None:
        raise EnvironmentFault(found)


def _is_pattern(pattern: str) -> bool:
    return _network(pattern) is not None or _NAME.fullmatch(pattern) is not None


def _network(pattern: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(pattern.strip("[]"), strict=False)
    except ValueError:
        return None


def _covers(pattern: str, host: str) -> bool:
    network = _network(pattern)
    if network is not None:
        try:
            return ipaddress.ip_address(host) in network
        except ValueError:
            # A name: what it resolves to is not guaranteed.
            return False
    name = pattern.lower().rstrip(".")
    return host.endswith(name[1:]) if name.startswith("*.") else host == name


def _without_query(url: str) -> str:
    """Return a URL without user, query and fragment, where a secret may stand."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
