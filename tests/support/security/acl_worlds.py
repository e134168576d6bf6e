"""Worlds for the tests of followed ACLs: rules at sources, flows of two topologies, topics of others at the target.

What may be done is computed here a second time, from the rules alone: a bit for each principal, host and operation.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from reconciler.model.acls.binding import Binding, ObservedBindings, OwnedBinding, Permission
from reconciler.model.acls.requirements import ALL, ResourcePattern
from reconciler.model.base.errors import AnabranchError
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.renames import RenameRule
from reconciler.model.names.selection import Selection
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import Plan
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.plan.build import build_plan
from reconciler.plan.guardrails.left_out import left_out, without
from tests.unit.plan.facts import cluster, topic

SOURCES, TARGET = ("a", "b"), "t"
OURS = "User:mirror"
PEOPLE = ("User:alice", "User:bob", "User:ANONYMOUS", "Group:staff")
PRINCIPALS = (*PEOPLE, "User:*")
HERE, THERE = "127.0.0.1", "10.1.2.3"
ADDRESSES = (HERE, THERE)
MATCHING: Mapping[str, Collection[str]] = {
    "*": ADDRESSES,
    HERE: (HERE,),
    THERE: (THERE,),
    "127.0.0.0/8": (HERE,),
    "10.1.2.3/32": (THERE,),
    "10.200.0.0/10": (),
    "10.9.9.9/8": (THERE,),
    "0.0.0.0/0": ADDRESSES,
    "2001:db8::/32": (),
}
"""By the host of a rule, which of `ADDRESSES` it matches where brokers take ranges."""
HOSTS = tuple(MATCHING)
CHECKED = ("READ", "DESCRIBE", "DESCRIBE_CONFIGS", "WRITE")
OPERATIONS = (*CHECKED, "READ", "READ", "ALL", "ALL", "ALTER", "ALTER_CONFIGS", "DELETE", "CREATE")
NAMES = ("pay", "pay.salaries", "pay.slips", "orders", "ord", "users", "a.pay", "x")

_PERMISSIONS: tuple[Permission, ...] = ("ALLOW", "ALLOW", "ALLOW", "DENY")

Access = int
"""One bit for each of `PEOPLE`, `ADDRESSES` and `CHECKED`."""

_GIVEN = {
    "READ": ("READ", "DESCRIBE"),
    "WRITE": ("WRITE", "DESCRIBE"),
    "ALTER": ("DESCRIBE",),
    "DELETE": ("DESCRIBE",),
    "ALTER_CONFIGS": ("DESCRIBE_CONFIGS",),
    "ALL": CHECKED,
}


@functools.cache
def bits(principal: str, host: str, operations: tuple[str, ...]) -> Access:
    """Return the bits of all whom a rule is about."""
    found = 0
    for place, (who, where, what) in enumerate((p, h, o) for p in PEOPLE for h in ADDRESSES for o in CHECKED):
        if principal in (who, "User:*") and where in MATCHING[host] and what in operations:
            found |= 1 << place
    return found


def said(access: Access) -> list[str]:
    """Return bits in words."""
    every = [f"{p} {o} from {h}" for p in PEOPLE for h in ADDRESSES for o in CHECKED]
    return [words for place, words in enumerate(every) if access >> place & 1]


def access(bindings: Iterable[Binding], name: str, takes_ranges: bool) -> Access:
    """Return what some ACLs let whom do with a topic of a cluster that takes ranges, or does not."""
    allowed = denied = 0
    for one in bindings:
        pattern = one.pattern
        if "/" in one.host and not takes_ranges:
            continue
        if one.kind != "topic" or not (
            name.startswith(pattern.name) if pattern.prefixed else pattern.name in (name, ALL.name)
        ):
            continue
        if one.permission == "ALLOW":
            given = _GIVEN.get(one.operation, (one.operation,))
            allowed |= bits(one.principal, one.host, given)
        else:
            meant = CHECKED if one.operation == "ALL" else (one.operation,)
            denied |= bits(one.principal, one.host, meant)
    return allowed & ~denied


Copies = Mapping[str, Sequence[tuple[Flow, str]]]
"""By remote topic, the flows that fill it, each with an original."""


@dataclass(frozen=True)
class World:
    """Two topologies, their sources, and the target.

    Attributes:
        topologies: the declarations.
        copied: by the topology's name, what of it was copied when it was applied last.
        clusters: by alias.
        granted_by_people: ACLs at the target that no apply granted.
    """

    topologies: tuple[Topology, ...]
    copied: Mapping[str, Copies]
    clusters: Mapping[str, ObservedCluster]
    granted_by_people: frozenset[Binding]

    @property
    def target(self) -> ObservedCluster:
        """The target."""
        return self.clusters[TARGET]

    def with_target(self, target: ObservedCluster) -> World:
        """Return the world in which the target is another one."""
        return replace(self, clusters={**self.clusters, TARGET: target})


def rules(random: Random, count: int, names: Sequence[str] = NAMES) -> Iterator[Binding]:
    """Yield random rules about topics."""
    for _ in range(count):
        name = random.choice(names)
        pattern = random.choice(
            (
                ResourcePattern(name),
                ResourcePattern(name),
                ResourcePattern(name[: random.randint(1, len(name))], prefixed=True),
                ALL,
            )
        )
        who = random.choice((*PRINCIPALS, PEOPLE[0], PEOPLE[0], OURS))
        permission = random.choice(_PERMISSIONS)
        host = random.choice(HOSTS) if random.random() < 0.3 else "*"
        yield Binding("topic", pattern, who, random.choice(OPERATIONS), permission, host)
    if random.random() < 0.1:
        yield Binding("cluster", ResourcePattern("kafka-cluster"), "User:*", "ALL", "DENY")


def world(random: Random) -> World:
    """Return a random world, before anything was applied."""
    sources = {
        alias: replace(
            cluster(alias, *map(topic, random.sample(NAMES, random.randint(2, 5))), internal=False),
            acls=_seen(frozenset(rules(random, random.randint(1, 6))), random.random() < 0.7),
        )
        for alias in SOURCES
    }
    others = [topic(name) for name in random.sample(("a.private", "a.pay.mine", "pay.own", "own"), 2)]
    people = frozenset(rules(random, random.choice((0, 0, 2)), ("a.pay", "orders", "a.orders", "own")))
    people = frozenset(one for one in people if one.permission == "ALLOW")
    target = cluster(TARGET, *others)
    topologies = (_topology(random, "one"), _topology(random, "two"))
    found = World(topologies, {}, {**sources, TARGET: target}, people)
    return found.with_target(replace(target, acls=_seen(people, random.random() < 0.7)))


def with_former_grants(random: Random, one: World) -> World:
    """Return a world in which an older release has granted prefixes of copies."""
    target, flow = one.target, random.choice(one.topologies[0].flows)
    name = f"{flow.source}.{random.choice(('', 'pay', 'o'))}"
    wide = frozenset(
        Binding("topic", ResourcePattern(name, prefixed=True), random.choice(PRINCIPALS), operation, permission)
        for operation, permission in (("READ", _PERMISSIONS[0]), ("DESCRIBE_CONFIGS", random.choice(_PERMISSIONS)))
    )
    records = tuple(OwnedBinding(binding, "one", flow.name) for binding in sorted(wide))
    acls = target.acls
    return one.with_target(
        replace(target, acls=replace(acls, bindings=acls.bindings | wide, owned=(*acls.owned, *records)))
    )


def moved_on(random: Random, one: World) -> World:
    """Return a world in which something has changed: rules, topics, declarations."""
    clusters = dict(one.clusters)
    for alias in SOURCES:
        source = clusters[alias]
        kept = {binding for binding in sorted(source.acls.bindings) if random.random() < 0.6}
        is_hidden = random.random() < 0.1
        acls = frozenset(kept) | frozenset(rules(random, random.randint(0, 3)))
        topics = {name: source.topics[name] for name in sorted(source.topics) if random.random() < 0.8}
        topics |= {name: topic(name) for name in random.sample(NAMES, 2)}
        takes_ranges = source.acls.takes_ranges or random.random() < 0.2
        seen = ObservedBindings("hidden") if is_hidden else _seen(acls, takes_ranges)
        clusters[alias] = replace(source, topics=topics, names=frozenset(topics), acls=seen)
    target = clusters[TARGET]
    mine = topic(random.choice(("a.private", "a.orders.mine", "b.private")))
    if mine.name not in target.names:
        topics = {**target.topics, mine.name: mine}
        clusters[TARGET] = replace(target, topics=topics, names=target.names | {mine.name})
    topologies = one.topologies
    if random.random() < 0.2:
        first = topologies[0]
        flows = tuple(
            replace(flow, acls=flow.acls and random.random() < 0.5, enabled=random.random() < 0.9)
            for flow in first.flows
        )
        topologies = (replace(first, flows=flows), *topologies[1:])
    return replace(one, clusters=clusters, topologies=topologies)


def planned(topology: Topology, clusters: Mapping[str, ObservedCluster]) -> tuple[Plan, Topology]:
    """Return what an apply would do, or, where it refuses, the reconcile loop, and what is copied then."""
    try:
        return build_plan(topology, clusters, [TARGET]), topology
    except AnabranchError:
        pass
    reduced = without(topology, left_out(topology, clusters, [TARGET]))
    try:
        return build_plan(reduced, clusters, [TARGET]), reduced
    except AnabranchError:
        return Plan(topology.name, topology.digest, ()), reduced


def copies_of(topology: Topology) -> Copies:
    """Return which originals the flows of a topology copy to a remote topic, by its name, by the flows' own words."""
    found: dict[str, list[tuple[Flow, str]]] = {}
    for flow in topology.flows:
        for original in NAMES:
            if flow.enabled and flow.takes(original, topology.aliases):
                found.setdefault(flow.remote_topic(original), []).append((flow, original))
    return found


def originals(one: World, topology: str, name: str) -> list[tuple[Flow, str]]:
    """Return whose records the copy `name` holds; none where it is no copy of the topology."""
    record = one.target.owned.get(name)
    if record is None or record.topology != topology or name not in one.target.names:
        return []
    recorded = (record.source, record.source_topic)
    found = one.copied.get(topology, {}).get(name, [])
    if record.offsets == "identical":
        # Another flow that takes the same topic is not started.
        return [(flow, said) for flow, said in found if (flow.source, said, flow.name) == (*recorded, record.flow)]
    return [
        (flow, said)
        for flow, said in found
        if said in one.clusters[flow.source].topics or (flow.source, said) == recorded
    ]


def _seen(bindings: frozenset[Binding], takes_ranges: bool) -> ObservedBindings:
    return ObservedBindings("seen", bindings, takes_ranges=takes_ranges)


def _topology(random: Random, name: str) -> Topology:
    clusters = {alias: Cluster(alias, (f"{alias}.example:9092",)) for alias in (*SOURCES, TARGET)}
    ours = Security("SASL_PLAINTEXT", "PLAIN", "mirror")
    clusters[TARGET] = replace(clusters[TARGET], security=ours)
    flows = tuple(_flow(random, f"{name}-{number}") for number in range(random.randint(1, 3)))
    return Topology(name, clusters, flows)


def _flow(random: Random, name: str) -> Flow:
    include = random.choice(((".*",), (".*",), ("pay.*",), ("orders", "users"), ("pay", "ord.*", "a.pay")))
    exclude: Collection[str] = random.choice(((), (), ("pay.salaries",), ("ord.*",)))
    policy = random.choice(
        (
            ReplicationPolicy(),
            ReplicationPolicy(),
            ReplicationPolicy("identity"),
            ReplicationPolicy("rename", rules=(RenameRule("^pay(.*)$", "a.pay\\1"),)),
            ReplicationPolicy("rename", rules=(RenameRule("^(ord|orders)$", "sums"),), otherwise="identity"),
        )
    )
    made = Flow(name, random.choice(SOURCES), TARGET, Selection(include, tuple(exclude)), policy)
    return replace(
        made,
        acls=random.random() < 0.8,
        offsets=random.choice(("auto", "auto", "translated")),
        failed_over=random.random() < 0.05,
    )
