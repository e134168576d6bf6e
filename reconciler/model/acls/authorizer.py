"""Kafka's authorization rules, applied to a set of ACLs.

A model of `StandardAuthorizer` (KRaft; `AclAuthorizer` decides alike) without super users, which ACLs do not name:
patterns are literal, prefixed (KIP-290), or `*` for every resource of a kind; a principal is matched as it is written,
and `User:*` matches each; hosts are as `hosts` has it. DENY wins over ALLOW, whichever pattern is longer. ALLOW
of some operations gives a lesser one (`IMPLIED`); DENY denies the operation that it names, and nothing besides. `plan`
goes by it, and tests hold it against brokers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from reconciler.model.acls.binding import Binding
from reconciler.model.acls.hosts import contains, is_range, matches, meet
from reconciler.model.acls.requirements import ALL, IMPLIED, ResourceKind, ResourcePattern

EVERY_PRINCIPAL = "User:*"
"""Matches every principal, of whichever type (`AuthorizerData.WILDCARD_PRINCIPAL`)."""

EVERY_OPERATION = "ALL"


class Authorizer:
    """Decides as a cluster with these ACLs does.

    Args:
        bindings: the ACLs.
        open_without_acls: the brokers' `allow.everyone.if.no.acl.found`: whether what no ACL is about is open to all.
        takes_ranges: whether ACLs may be about a range of addresses; where not, those that are match no client.
    """

    def __init__(
        self, bindings: Iterable[Binding], open_without_acls: bool = False, takes_ranges: bool = False
    ) -> None:
        self._open = open_without_acls
        self._takes_ranges = takes_ranges
        self._found: dict[tuple[ResourceKind, ResourcePattern], list[Binding]] = defaultdict(list)
        for one in sorted(bindings):
            self._found[one.kind, one.pattern].append(one)
        self._lengths = sorted({len(pattern.name) for _, pattern in self._found if pattern.prefixed})

    def about(self, name: str, kind: ResourceKind = "topic") -> tuple[Binding, ...]:
        """Return the ACLs whose pattern covers a resource, whether it exists or not."""
        patterns = [ALL, ResourcePattern(name)] if name != ALL.name else [ALL]
        patterns += [ResourcePattern(name[:length], prefixed=True) for length in self._lengths if length <= len(name)]
        return tuple(one for pattern in patterns for one in self._found.get((kind, pattern), ()))

    def is_idle(self, one: Binding) -> bool:
        """Return whether an ACL matches no client, as it is about a range that is none to this cluster."""
        return is_range(one.host) and not self._takes_ranges

    def allows(self, principal: str, operation: str, name: str, host: str, kind: ResourceKind = "topic") -> bool:
        """Return whether a principal may do something with a resource.

        Args:
            principal: as Kafka writes it: `User:alice`.
            operation: Kafka's name of it; not ALL.
            name: of the resource.
            host: the client's address.
            kind: of the resource.
        """
        found = self.about(name, kind)
        if not found:
            return self._open
        mine = [
            one
            for one in found
            if one.principal in (principal, EVERY_PRINCIPAL) and matches(one.host, host) and not self.is_idle(one)
        ]
        if any(one.permission == "DENY" and denies(one.operation, operation) for one in mine):
            return False
        return any(one.permission == "ALLOW" and gives(one.operation, operation) for one in mine)

    def allows_all_of(self, allowed: Binding, name: str) -> bool:
        """Return whether a resource allows all that an ALLOW binding grants, to all its principals, from all hosts."""
        about = [one for one in self.about(name, allowed.kind) if not self.is_idle(one)]
        denied = any(denies_some_of(one, allowed, allowed.operation) for one in about)
        return not denied and covers(about, allowed, allowed.operation)


def covers(about: Iterable[Binding], allowed: Binding, operation: str) -> bool:
    """Return whether some ACLs allow an operation to all principals of an ALLOW binding, regardless of DENY bindings.

    Args:
        about: ACLs about one resource.
        allowed: whose principal and host count.
        operation: Kafka's name of it.
    """
    return any(
        one.permission == "ALLOW"
        and one.principal in (allowed.principal, EVERY_PRINCIPAL)
        and contains(one.host, allowed.host)
        and gives(one.operation, operation)
        for one in about
    )


def denies_some_of(one: Binding, allowed: Binding, operation: str) -> bool:
    """Return whether an ACL denies an operation to some client that an ALLOW binding is about.

    Args:
        one: an ACL about the same resource, of either permission.
        allowed: whose principal and host count.
        operation: Kafka's name of it.
    """
    return (
        one.permission == "DENY"
        and (EVERY_PRINCIPAL in (one.principal, allowed.principal) or one.principal == allowed.principal)
        and meet(one.host, allowed.host) is not None
        and denies(one.operation, operation)
    )


def gives(granted: str, operation: str) -> bool:
    """Return whether an ALLOW of one operation allows another."""
    return granted in (operation, EVERY_OPERATION) or IMPLIED.get(granted) == operation


def denies(denied: str, operation: str) -> bool:
    """Return whether a DENY of one operation denies another; what an ALLOW of it would give, it leaves."""
    return denied in (operation, EVERY_OPERATION)
