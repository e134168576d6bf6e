"""What is granted on copies, in random worlds: at no moment more than their originals allow, in the end no less."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from random import Random

import pytest

from reconciler.model.acls.authorizer import Authorizer
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import AclChange, CreateTopic, Plan, Step
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.plan.acls.bindings import acl_steps
from reconciler.plan.acls.followed import _READ_ONLY, _READ_WRITE, followed
from reconciler.plan.copies.failed_over import opened, resolved
from reconciler.plan.copies.offsets import choices
from tests.support.security.acl_worlds import (
    ADDRESSES,
    CHECKED,
    OURS,
    PEOPLE,
    TARGET,
    Access,
    World,
    access,
    bits,
    copies_of,
    moved_on,
    originals,
    planned,
    rules,
    said,
    with_former_grants,
    world,
)
from tests.unit.plan.facts import carried_out

pytestmark = pytest.mark.slow

WORLDS = 250
"""In one test; a portion of 250 takes about five seconds of one processor."""

PORTIONS = 20

_READS = bits("User:*", "*", ("READ",))
_READING = bits("User:*", "*", ("READ", "DESCRIBE", "DESCRIBE_CONFIGS"))


def excess(one: World, topology: str) -> dict[str, Access]:
    """Return, by topic of the target, what we have granted there beyond what all originals allow.

    Prefixes that an older release has granted for another topology are for its next apply to take back.
    """
    theirs = {acl.binding for acl in one.target.acls.owned if acl.topology != topology and acl.binding.pattern.is_wide}
    ours = one.target.acls.bindings - one.granted_by_people - theirs
    found: dict[str, Access] = {}
    for name in one.target.names:
        if (granted := access(ours, name, one.target.acls.takes_ranges)) and (beyond := granted & ~_allowed(one, name)):
            found[name] = beyond
    return found


def _allowed(one: World, name: str) -> Access:
    """Return what may be granted on a topic: nothing on what is no copy, or the copy of a flow that follows none."""
    for topology in one.copied:
        if filled := originals(one, topology, name):
            found = _READING if not all(flow.failed_over for flow, _ in filled) else ~0
            for flow, original in filled:
                acls = one.clusters[flow.source].acls
                found &= access(acls.bindings, original, acls.takes_ranges) if flow.acls else 0
            return found
    return 0


def readers(one: World) -> dict[str, Access]:
    """Return, by copy, who may read it."""
    acls = one.target.acls
    return {name: access(acls.bindings, name, acls.takes_ranges) & _READS for name in one.target.owned}


def singly(plan: Plan, before: ObservedCluster) -> Iterator[tuple[Step, ObservedCluster]]:
    """Carry out a plan step by step."""
    for cluster in plan.clusters:
        for step in cluster.steps:
            before = carried_out(replace(plan, clusters=(replace(cluster, steps=(step,)),)), before)
            yield step, before


def applied(random: Random, one: World, topology: Topology) -> World:
    """Apply a topology, with all checks after each step."""
    plan, copied = planned(topology, one.clusters)
    former, one = one, replace(one, copied={**one.copied, topology.name: copies_of(copied)})
    before, could_read = excess(one, topology.name), readers(one)
    ends_early = random.random() < 0.15
    standing = [one]
    for step, target in singly(plan, one.target):
        one = one.with_target(target)
        standing.append(one)
        if isinstance(step, AclChange | CreateTopic):
            now = excess(one, topology.name)
            for name, beyond in now.items():
                assert not beyond & ~before.get(name, 0), f"{step}: {name}: {said(beyond & ~before.get(name, 0))}"
        if ends_early and random.random() < 0.2:
            return one
    if not plan.clusters:
        return one
    lasting = readers(one)
    for moment in standing:
        now = readers(moment)
        for name, read in could_read.items():
            lost = read & lasting[name] & ~now[name]
            assert not lost, f"{name}: {said(lost)} in between"
    moved = {name for name, record in one.target.owned.items() if _is_moved(former.target.owned.get(name), record)}
    _check_end(one, copied, moved)
    return one


def _is_moved(before: OwnedTopic | None, now: OwnedTopic) -> bool:
    """Tell whether the record of a copy of several originals names another one than before."""
    return before is not None and (before.source, before.source_topic) != (now.source, now.source_topic)


def _check_end(one: World, topology: Topology, moved: Collection[str]) -> None:
    """Check what holds when a topology is applied: nothing too much, nothing lost, nothing left to do.

    Args:
        one: the world.
        topology: what is copied.
        moved: copies that the next plan knows one original less of.
    """
    left = excess(one, topology.name)
    seen = {alias for alias, cluster in one.clusters.items() if cluster.acls.sight == "seen"}
    chosen = choices(topology, one.clusters, [TARGET])
    found = followed(opened(topology, one.clusters), one.clusters, chosen, TARGET)
    for name, record in one.target.owned.items():
        filled = originals(one, topology.name, name)
        if record.topology != topology.name or not filled or not {flow.source for flow, _ in filled} <= seen:
            continue
        assert not left.get(name), f"{name}: {said(left[name])}"
        if not all(flow.acls for flow, _ in filled) or name not in found.copies or name in moved:
            continue
        unfollowed = {
            binding
            for (_, why), acls in found.left.items()
            if why not in (_READ_ONLY, _READ_WRITE)
            for binding, copies in acls.items()
            if name in copies and binding.permission == "ALLOW"
        }
        wanted, simple = _READS, True
        for flow, original in filled:
            acls = one.clusters[flow.source].acls
            at_source = acls.bindings
            wanted &= access(at_source - unfollowed, original, acls.takes_ranges)
            about = Authorizer(at_source).about(original)
            simple &= not any(acl.principal == "User:*" and acl.permission == "DENY" for acl in about)
            simple &= len(filled) == 1
            simple &= not any("/" in acl.host for acl in about) or (acls.takes_ranges and one.target.acls.takes_ranges)
        lost = wanted & ~readers(one)[name]
        assert not lost, f"{name}: {said(lost)}"
        # Where nothing stands against it, the notes may not say that something does.
        assert not (simple and unfollowed - {acl for acl in unfollowed if acl.principal == OURS})
    again = acl_steps(topology, one.clusters, choices(resolved(topology, one.clusters), one.clusters, [TARGET]), TARGET)
    assert not [step for step in again if step.binding.pattern.name not in moved], again


def test_nobody_may_do_with_a_copy_what_originals_do_not_allow_and_nobody_loses_what_follows() -> None:
    _go_through(range(WORLDS))


@pytest.mark.long
@pytest.mark.parametrize("portion", range(1, PORTIONS))
def test_so_it_is_in_thousands_of_worlds(portion: int) -> None:
    _go_through(range(portion * WORLDS, (portion + 1) * WORLDS))


def _go_through(seeds: Iterable[int]) -> None:
    for seed in seeds:
        random = Random(seed)
        try:
            one = world(random)
            if random.random() < 0.2:
                one = with_former_grants(random, one)
            for _ in range(2):
                for topology in one.topologies:
                    one = applied(random, one, topology)
                one = moved_on(random, one)
        except Exception as error:
            error.add_note(f"seed {seed}")
            raise


def test_the_model_says_what_the_rules_say() -> None:
    for seed in range(300):
        found = frozenset(rules(Random(seed), 6))
        takes_ranges = seed % 2 == 0
        model = Authorizer(found, takes_ranges=takes_ranges)
        for name in ("pay", "pay.salaries", "orders", "zebra"):
            allowed = [
                f"{who} {operation} from {host}"
                for who in PEOPLE
                for host in ADDRESSES
                for operation in CHECKED
                if model.allows(who, operation, name, host)
            ]
            assert allowed == said(access(found, name, takes_ranges)), f"seed {seed}"
