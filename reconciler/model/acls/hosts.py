"""Which clients the host of an ACL matches.

`*` matches all, an address itself, as it is written. Since Kafka 4.4 there are ranges (KIP-1276: `10.0.0.0/8`,
`2001:db8::/32`), where the cluster's `metadata.version` is `RANGES_SINCE` or more. Before, such a text matches none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

ANYWHERE = "*"
"""Matches every host."""

RANGES_SINCE = 32
"""The level of the feature `metadata.version` as of which brokers take ranges (`isCidrAclSupported` in Kafka)."""

# As brokers read it (`CidrUtils`): decimal numbers, with or without leading zeros, and no netmask behind the slash.
_RANGE_OF_4 = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_RANGE_OF_6 = re.compile(r"[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*/\d{1,3}", re.ASCII)


def is_range(host: str) -> bool:
    """Return whether the host of an ACL is a range, be it one that brokers can read or not."""
    return "/" in host


def matches(host: str, address: str) -> bool:
    """Return whether the host of an ACL matches a client's address, where brokers take ranges."""
    return host in (ANYWHERE, address) or _is_within(address, host)


def contains(host: str, other: str) -> bool:
    """Return whether the host of one ACL matches every client that the host of another one does."""
    if host in (ANYWHERE, other):
        return True
    mine, its = _network(host), _network(other)
    if mine is None or its is None:
        return _is_within(other, host)
    if isinstance(mine, IPv4Network):
        return isinstance(its, IPv4Network) and its.subnet_of(mine)
    return isinstance(its, IPv6Network) and its.subnet_of(mine)


def meet(host: str, other: str) -> str | None:
    """Return the host that matches the clients of both; None where none are. Of two ranges that meet, one is within."""
    return other if contains(host, other) else host if contains(other, host) else None


def _is_within(address: str, host: str) -> bool:
    network = _network(host)
    if network is None:
        return False
    try:
        return ip_address(address) in network
    except ValueError:
        return False


@lru_cache(1024)
def _network(host: str) -> IPv4Network | IPv6Network | None:
    """Return what a range holds, whatever bits stand behind its prefix; None where brokers refuse it."""
    text = host
    if found := _RANGE_OF_4.fullmatch(host):
        *octets, prefix = map(int, found.groups())
        text = f"{'.'.join(map(str, octets))}/{prefix}"
    elif not _RANGE_OF_6.fullmatch(host):
        return None
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None
