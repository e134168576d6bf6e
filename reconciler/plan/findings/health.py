"""Judges what `doctor` has found: fine, to be minded, or to be mended before anything runs.

Pure: facts in, checks out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from reconciler.model.acls.requirements import COPYING, IMPLIED, Acl, Purpose, ResourcePattern
from reconciler.model.connection import hosts
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.planning.health import BrokerSeen, Check, ClockSeen, Level, Machine, Rights
from reconciler.model.recorded.capabilities import REQUIRED, Capabilities, Capability, Verdict
from reconciler.model.tasks.slots import local_slots

OLDEST_PYTHON = (3, 11)
LARGEST_DIFFERENCE = 1.0
"""Seconds that two clocks may be apart."""

_ALLOWS_MARKERS = frozenset({"ALTER", "CLUSTER_ACTION"})
_SHOWN = 5


def interpreter(machine: Machine) -> Check:
    """Judge the interpreter: its version, and whether Spark's workers have the same."""
    version = ".".join(map(str, machine.python))
    said = f"Python {version}, {machine.executable}"
    if machine.python[:2] < OLDEST_PYTHON:
        return Check("interpreter", "failure", said, "run Anabranch with Python 3.11 or newer")
    if machine.workers not in (None, machine.executable):
        return Check(
            "interpreter",
            "warning",
            f"{said}; PYSPARK_PYTHON names {machine.workers}",
            "`replicate` has its workers run its own interpreter; for PySpark programs of your own set PYSPARK_PYTHON "
            f"to {machine.executable}",
        )
    return Check("interpreter", "ok", said)


def slots(flows: Sequence[Flow], cores: int, master: str | None = None) -> Check:
    """Judge how many tasks run at once: `replicate` has a slot of Spark's local mode for each, or lets many share some.

    Args:
        flows: those of one process.
        cores: of this machine.
        master: of the Spark cluster that they run on, if not here; contacted when they start.
    """
    tasks = sum(flow.tasks for flow in flows)
    what = f"{tasks} task{'' if tasks == 1 else 's'} of {len(flows)} flow{'' if len(flows) == 1 else 's'}"
    if master is not None:
        return Check("slots", "ok", f"{what}, on {master}; counted at the start")
    said = f"{what}; replicate runs Spark as local[{local_slots(tasks, cores)},8]; {cores} cores here"
    if tasks <= cores:
        return Check("slots", "ok", said)
    return Check(
        "slots",
        "warning",
        said,
        "tasks share cores, which costs throughput: run flows next to their targets on several machines "
        "(replicate --clusters), or declare fewer tasks",
    )


def brokers(cluster: Cluster, seen: Collection[BrokerSeen]) -> Check:
    """Judge whether every broker of a cluster answers at the address that it advertises."""
    what = f"cluster {cluster.alias}: brokers"
    lost = [broker for broker in seen if broker.trouble]
    if not lost:
        return Check(what, "ok", f"{len(seen)} answer: {_few([broker.address for broker in seen])}")
    return Check(
        what,
        "failure",
        _few([f"broker {broker.node} advertises {broker.address}: {broker.trouble}" for broker in lost]),
        "correct advertised.listeners of these brokers, or names and routes on this machine",
    )


def encryption(cluster: Cluster, seen: Collection[BrokerSeen]) -> Check:
    """Judge whether traffic with a cluster, its tokens included, may be read on the way.

    Args:
        cluster: which one.
        seen: its brokers; records go to the addresses that they advertise.
    """
    what, security = f"cluster {cluster.alias}: encryption", cluster.security
    said: list[str] = []
    addresses = dict.fromkeys((*cluster.addresses, *(broker.address for broker in seen)))
    far = [address for address in addresses if not hosts.is_loopback(hosts.host_of(address))]
    if far and not security.has_tls:
        bare = {"PLAIN": "the password, ", "OAUTHBEARER": "tokens, "}.get(security.mechanism or "", "")
        said.append(f"{security.protocol}: {bare}records, settings and ACLs go in clear to {_few(far)}")
    said += [
        f"the client's secret goes in clear to {url}" for url in cluster.token_endpoints if hosts.leaves_in_clear(url)
    ]
    if said:
        remedy = "let brokers offer SSL or SASL_SSL, and endpoints https; or keep all of it in a network that you trust"
        return Check(what, "warning", "; ".join(said), remedy)
    if security.has_tls and not security.verify_hostname:
        found = "TLS, without host names verified: any certificate that ca has signed passes for a broker"
        return Check(what, "warning", found, "give brokers certificates with their names, and remove verify-hostname")
    return Check(what, "ok", "TLS, with host names verified" if security.has_tls else "none, and on this machine alone")


def clock(cluster: Cluster, seen: ClockSeen) -> Check:
    """Judge the difference between two clocks: figures of lag and latency rest on it, and nothing that is copied."""
    what = f"cluster {cluster.alias}: clock"
    if seen.ahead is None:
        return Check(what, "warning", f"cannot be determined: {seen.why_not}", "see to it that NTP runs everywhere")
    direction = "ahead of" if seen.ahead >= 0 else "behind"
    said = f"the controller's clock is {abs(seen.ahead):.3f} s {direction} this machine's, ± {seen.within:.3f} s"
    if abs(seen.ahead) - seen.within <= LARGEST_DIFFERENCE:
        return Check(what, "ok", said)
    return Check(what, "warning", said, "see to it that NTP runs everywhere; lag in time and latency are wrong by that")


def permissions(cluster: Cluster, acls: Collection[Acl], rights: Rights) -> Iterator[Check]:
    """Judge what our user may do on a cluster against what is needed there.

    What is missing to replicate is a failure, and what is missing for `apply` a warning, as another user may do that.

    Args:
        cluster: which one.
        acls: what is needed there.
        rights: what is allowed there, for every resource of `requirements` that exists.
    """
    for purpose in COPYING:
        mine = [acl for acl in acls if acl.purpose == purpose]
        missing = _missing([acl for acl in mine if not acl.is_optional], rights)
        optional = _missing([acl for acl in mine if acl.is_optional], rights)
        yield _allowed(cluster, purpose, missing, optional, _untold(mine, rights))


def capabilities(
    cluster: Cluster, found: Capabilities | None, has_transactions: bool, takes_identical: bool = True
) -> Check:
    """Judge what a target was seen to do.

    Args:
        cluster: the target.
        found: what the probe has recorded; None where nothing was tried yet.
        has_transactions: whether the target has transactional ids.
        takes_identical: whether some flow may give copies identical offsets there.
    """
    what = f"cluster {cluster.alias}: capabilities"
    if not has_transactions:
        remedy = "take Apache Kafka 2.8 or newer, or declare `delivery: at-least-once`"
        return Check(what, "failure", "the cluster has no transactions", remedy)
    if not takes_identical:
        return Check(what, "ok", "transactions, and translated offsets need nothing else")
    if found is None:
        return Check(what, "ok", "transactions; nothing else was tried yet: `replicate` does when it first begins")
    failed = found.required(Verdict.FAILS)
    if failed:
        remedy = "this cluster cannot hold copies with identical offsets; take Apache Kafka 2.8 or newer"
        return Check(what, "failure", "; ".join(map(str, failed)), remedy)
    ways = [way.value for way in (Capability.MARKERS, Capability.TRANSACTIONS) if found.verdict(way) is Verdict.HOLDS]
    if not ways:
        return Check(what, "warning", "gaps can be filled in no way", "see permissions; partitions park at gaps")
    return Check(what, "ok", f"all {len(REQUIRED)} that identical offsets need; gaps are filled by {' or '.join(ways)}")


def _allowed(
    cluster: Cluster, purpose: Purpose, missing: Sequence[str], optional: Sequence[str], untold: Sequence[str]
) -> Check:
    what = f"cluster {cluster.alias}: permissions to {purpose}"
    if missing:
        level: Level = "failure" if purpose == "replicate" else "warning"
        said, remedy = f"{cluster.user} lacks {_few(missing)}", "`anabranch explain --acls` prints all that is needed"
        return Check(what, level, said, remedy)
    without = f"; without what is optional: {_few(optional)}" if optional else ""
    silent = f"; the cluster does not report {_few(untold)}" if untold else ""
    return Check(what, "ok", f"{cluster.user} has all permissions that are needed on what exists{silent}{without}")


def _untold(acls: Collection[Acl], rights: Rights) -> list[str]:
    """Return the resources whose allowed operations the cluster does not report, as `topic orders`."""
    silent = [resource for resource, allowed in rights.operations.items() if allowed is None]
    return [
        f"{kind} {name}"
        for kind, name in silent
        if any(acl.kind == kind and acl.pattern.covers(ResourcePattern(name)) for acl in acls)
    ]


def _missing(acls: Collection[Acl], rights: Rights) -> list[str]:
    """Return what is refused, as `READ on topic orders`."""
    found: dict[str, list[str]] = {}
    for acl in acls:
        for (kind, name), allowed in rights.operations.items():
            is_meant = kind == acl.kind and acl.pattern.covers(ResourcePattern(name))
            if is_meant and allowed is not None and not _gives(acl, allowed):
                found.setdefault(f"{kind} {name}", []).append(acl.operation)
    return [f"{' and '.join(dict.fromkeys(operations))} on {resource}" for resource, operations in found.items()]


def _gives(acl: Acl, allowed: Collection[str]) -> bool:
    if acl.kind == "cluster" and acl.operation in _ALLOWS_MARKERS:
        return not _ALLOWS_MARKERS.isdisjoint(allowed)
    return acl.operation in allowed or any(IMPLIED.get(one) == acl.operation for one in allowed)


def _few(said: Sequence[str]) -> str:
    shown = ", ".join(said[:_SHOWN])
    return shown if len(said) <= _SHOWN else f"{shown} and {len(said) - _SHOWN} more"
