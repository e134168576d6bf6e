"""Which ACLs copies get: reading follows originals, writing does not, and nothing foreign is touched."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from reconciler.model.acls.binding import Binding, ObservedBindings, OwnedBinding, Permission, Sight
from reconciler.model.acls.own_access import Access
from reconciler.model.acls.requirements import ALL, ResourcePattern
from reconciler.model.base.errors import Refused
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Replicator
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.removals import DeleteTopic, DeletionKind
from reconciler.model.planning.steps import AclChange, GrantAcl, RevocationCause, RevokeAcl
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.plan.findings.drift import drift_of
from reconciler.plan.removal.deletion_limit import check_deletions
from reconciler.plan.removal.destroy import destroy_plan
from reconciler.plan.removal.prune import cleared, pruned
from reconciler.plan.whole import whole_acls, whole_topics
from reconciler.report.plan.to_json import plan_json
from tests.unit.plan.facts import EAST, WEST, carried_out, cluster, flow, plan_of, topic, topology


def acl(
    name: str = "orders",
    operation: str = "READ",
    who: str = "alice",
    permission: Permission = "ALLOW",
    prefixed: bool = False,
) -> Binding:
    return Binding("topic", ResourcePattern(name, prefixed), f"User:{who}", operation, permission)


def seen(one: ObservedCluster, *bindings: Binding, owned: Collection[OwnedBinding] = ()) -> ObservedCluster:
    return replace(one, acls=ObservedBindings("seen", frozenset(bindings), tuple(owned)))


def source(*bindings: Binding, topics: Collection[str] = ("orders", "users")) -> ObservedCluster:
    return seen(cluster(EAST, *(topic(name) for name in topics)), *bindings)


def target(*bindings: Binding, owned: Collection[OwnedBinding] = ()) -> ObservedCluster:
    return seen(cluster(WEST), *bindings, owned=owned)


def steps(declared: Topology, *clusters: ObservedCluster) -> list[AclChange]:
    return [step for step in plan_of(declared, *clusters).steps if isinstance(step, AclChange)]


def granted(*bindings: Binding, there: ObservedCluster | None = None, declared: Topology | None = None) -> list[str]:
    found = steps(declared or topology(), source(*bindings), there or target())
    assert all(isinstance(step, GrantAcl) for step in found)
    return [str(step.binding) for step in found]


@pytest.mark.parametrize(
    ("operation", "permission", "expected"),
    [
        ("READ", "ALLOW", ["READ"]),
        ("DESCRIBE", "ALLOW", ["DESCRIBE"]),
        ("DESCRIBE_CONFIGS", "ALLOW", ["DESCRIBE_CONFIGS"]),
        ("ALL", "ALLOW", ["DESCRIBE_CONFIGS", "READ"]),
        ("WRITE", "ALLOW", []),
        ("ALTER", "ALLOW", []),
        ("DELETE", "ALLOW", []),
        ("READ", "DENY", ["READ"]),
        ("ALL", "DENY", ["DESCRIBE", "DESCRIBE_CONFIGS", "READ"]),
        ("WRITE", "DENY", []),
    ],
)
def test_what_is_about_reading_follows(operation: str, permission: Permission, expected: list[str]) -> None:
    found = steps(topology(), source(acl(operation=operation, permission=permission)), target())
    copies = [acl("us-east.orders", one, permission=permission) for one in expected]
    assert [(type(step), step.binding) for step in found] == [(GrantAcl, copy) for copy in copies]


def test_each_copy_is_named_under_every_policy() -> None:
    assert granted(acl("ord", prefixed=True)) == ["User:alice READ on topic us-east.orders"]
    assert granted(acl("*")) == ["User:alice READ on topic us-east.orders", "User:alice READ on topic us-east.users"]
    assert granted(acl("pay", prefixed=True)) == [], "no topic that is copied begins so"
    identity = topology(flow(policy=ReplicationPolicy("identity")))
    assert granted(acl("*"), declared=identity) == ["User:alice READ on topic orders", "User:alice READ on topic users"]
    assert granted(acl("ord", prefixed=True), declared=identity) == ["User:alice READ on topic orders"]


def test_what_is_not_copied_is_not_granted() -> None:
    assert granted(acl("payments"), acl("orders"), declared=topology(flow(include=["users"]))) == []
    assert granted(acl("orders"), declared=topology(flow(acls=False))) == []


def test_our_own_principal_is_left_out_and_what_everybody_is_denied_is_granted_to_nobody() -> None:
    declared = topology()
    user = replace(declared.clusters[WEST], security=Security("SASL_PLAINTEXT", "PLAIN", "mirror"))
    declared = replace(declared, clusters={**declared.clusters, WEST: user})
    mine, everybody = acl(who="mirror"), acl(who="*", permission="DENY")
    assert steps(declared, source(mine, acl(who="*")), target()) == [
        GrantAcl(WEST, acl("us-east.orders", who="*"), "us-east-eu-west")
    ]
    # What is left of READ is DESCRIBE.
    assert steps(declared, source(mine, everybody, acl(who="*")), target()) == [
        GrantAcl(WEST, acl("us-east.orders", "DESCRIBE", who="*"), "us-east-eu-west")
    ]
    all_of_it = acl(operation="ALL", who="*", permission="DENY")
    assert steps(declared, source(mine, all_of_it, acl(who="*"), acl("*", who="alice")), target()) == [
        GrantAcl(WEST, acl("us-east.users"), "us-east-eu-west")
    ]


def test_what_others_granted_is_enough_and_never_becomes_ours() -> None:
    there = acl("us-east.orders")
    assert granted(acl(), there=target(there)) == []
    assert steps(topology(), source(), target(there)) == []


def test_ours_is_revoked_when_the_original_has_it_no_more_and_kept_for_another_topology() -> None:
    copy = acl("us-east.orders")
    mine = OwnedBinding(copy, "payments", "us-east-eu-west")
    declared = topology()
    mine = replace(mine, topology=declared.name)
    (step,) = steps(declared, source(), target(copy, owned=[mine]))
    assert step == RevokeAcl(WEST, copy, "us-east-eu-west", is_kept=False)
    (step,) = steps(declared, source(), target(copy, owned=[mine, replace(mine, topology="another")]))
    assert step == RevokeAcl(WEST, copy, "us-east-eu-west", is_kept=True)
    assert steps(declared, source(), target(copy, owned=[replace(mine, topology="another")])) == []


def with_replicator(who: str, name: str = "payments", takes: str = "orders") -> Topology:
    declared = topology(flow(topics=Selection((takes,)), offsets="translated"), name=name)
    west = replace(declared.clusters[WEST], replicator=Replicator(f"User:{who}"))
    return replace(declared, clusters={**declared.clusters, WEST: west})


def test_what_another_topology_was_granted_is_on_our_record_too_and_stays_when_they_go() -> None:
    mine, theirs = with_replicator("mirror"), with_replicator("mirror", "people", "users")
    north = source(acl("*"))
    first = carried_out(plan_of(theirs, north, target()), target())
    both = carried_out(plan_of(mine, north, first), first)
    assert steps(mine, north, both) == []
    shared = {one.binding for one in first.acls.owned} & {one.binding for one in both.acls.owned_by(mine.name)}
    assert {(one.pattern.name, one.principal) for one in shared} >= {
        ("mm2-offset-syncs.us-east.internal", "User:mirror"),
    }
    # What stands in one topology's journals is nothing to another one.
    assert not any(one.pattern.name.startswith("anabranch.") for one in shared)
    destroyed = destroy_plan(theirs, {WEST: both}, (WEST,), ())
    left = carried_out(destroyed, both)
    assert shared <= left.acls.bindings
    assert steps(mine, north, left) == []


def test_whom_we_followed_and_who_replicates_now_keeps_what_both_are_allowed() -> None:
    north = source(acl(who="alice"))
    nobody = topology(flow(topics=Selection(("orders",))))
    followed = carried_out(plan_of(nobody, north, target()), target())
    reading = acl("us-east.orders", who="alice")
    assert reading in followed.acls.bindings
    for declared, role in ((with_replicator("alice"), "own"), (nobody, "followed")):
        found = [step for step in steps(declared, north, followed) if step.binding == reading]
        assert [(type(step), step.role) for step in found] == [(GrantAcl, role)]
        followed = carried_out(plan_of(declared, north, followed), followed)
        assert reading in followed.acls.bindings
        assert steps(declared, north, followed) == []


@pytest.mark.parametrize("sight", ["unasked", "unsure", "hidden", "off"])
def test_nothing_is_revoked_that_could_not_be_looked_up(sight: Sight) -> None:
    copy = acl("us-east.orders")
    mine = OwnedBinding(copy, topology().name, "us-east-eu-west")
    blind = replace(source(), acls=ObservedBindings(sight))
    assert steps(topology(), blind, target(copy, owned=[mine])) == []
    hidden = replace(target(), acls=ObservedBindings(sight, owned=(mine,)))
    # Where there are none, or no authorizer, trying tells.
    grants = [GrantAcl(WEST, copy, "us-east-eu-west")] if sight == "unsure" else []
    assert steps(topology(), source(acl()), hidden) == grants


def test_nothing_is_revoked_of_flows_that_run_no_more() -> None:
    copy = acl("us-east.orders")
    mine = OwnedBinding(copy, topology().name, "us-east-eu-west")
    assert steps(topology(flow(enabled=False)), source(), target(copy, owned=[mine])) == []
    elsewhere = topology(flow(name="another", include=["users"]))
    assert steps(elsewhere, source(), target(copy, owned=[mine])) == []


def test_what_is_refused_by_who_fills_the_copy_now_is_revoked_whoever_it_is_on_record_for() -> None:
    copy = acl("us-east.orders")
    mine = OwnedBinding(copy, topology().name, "us-east-eu-west")
    cases: list[tuple[Topology, RevocationCause]] = [
        (topology(flow(name="another")), "gone"),
        (topology(flow(acls=False)), "unfollowed"),
    ]
    for declared, cause in cases:
        (step,) = steps(declared, source(), target(copy, owned=[mine]))
        name = declared.flows[0].name
        assert step == RevokeAcl(WEST, copy, name, cause=cause)


def test_what_a_flow_of_another_name_granted_goes_on_as_this_ones() -> None:
    after = carried_out(plan_of(topology(), source(acl()), target()), target())
    renamed = topology(flow(name="another"))
    plan = plan_of(renamed, source(acl()), after)
    assert [step for step in plan.steps if isinstance(step, AclChange)] == [
        GrantAcl(WEST, acl("us-east.orders"), "another")
    ]
    later = carried_out(plan, after)
    assert plan_of(renamed, source(acl()), later).is_empty
    (step,) = steps(renamed, source(), later)
    assert isinstance(step, RevokeAcl)


def test_who_reads_a_copy_goes_on_when_its_original_is_gone() -> None:
    plan = plan_of(topology(), source(acl()), target())
    after = carried_out(plan, target())
    assert steps(topology(), source(acl(), topics=["users"]), after) == []


def test_an_apply_followed_by_a_plan_is_empty() -> None:
    here = source(
        acl(), acl("*", "ALL", who="bob"), acl("us", "DESCRIBE", prefixed=True), acl("users", permission="DENY")
    )
    for policy in (ReplicationPolicy(), ReplicationPolicy("identity")):
        declared = topology(flow(policy=policy))
        before = target()
        plan = plan_of(declared, here, before)
        assert plan.to_add > len(plan.clusters[0].flows)
        assert plan_of(declared, here, carried_out(plan, before)).changes_nothing


def _said(declared: Topology, *clusters: ObservedCluster) -> list[str]:
    return [notice.message for notice in plan_of(declared, *clusters).clusters[0].warnings]


def test_what_is_not_followed_is_said() -> None:
    blind = replace(source(), acls=ObservedBindings("hidden"))
    (said,) = _said(topology(), blind, target())
    assert said.startswith(
        "ACLs of originals are not followed: an anonymous user is not allowed DESCRIBE on cluster us"
    )
    hidden = replace(target(), acls=ObservedBindings("hidden"))
    (said,) = _said(topology(), source(acl()), hidden)
    assert "not allowed DESCRIBE on cluster eu-west" in said
    assert _said(topology(), source(), hidden) == [], "there is nothing to follow"
    weak = replace(target(), access=Access(frozenset({"DESCRIBE"})))
    (said,) = _said(topology(), source(acl()), weak)
    assert "not allowed ALTER on cluster eu-west" in said
    assert steps(topology(), source(acl()), weak) == []
    assert _said(topology(flow(acls=False)), blind, target()) == []


def test_drift_tells_what_is_gone_and_what_somebody_added() -> None:
    declared: Topology = topology()
    after = carried_out(plan_of(declared, source(acl()), target()), target())
    assert drift_of(declared, {WEST: after}) == ()
    added = acl("us-east.orders", "WRITE", "mallory")
    changed = replace(after, acls=replace(after.acls, bindings=frozenset({added})))
    found = drift_of(declared, {WEST: changed})
    assert [(one.kind, one.topic, one.field, one.desired, one.found) for one in found] == [
        ("missing", "us-east.orders", "acl", "User:alice READ on topic us-east.orders", None),
        ("unmanaged", "us-east.orders", "acl", None, "User:mallory WRITE on topic us-east.orders"),
    ]


def test_json_gives_back_what_it_was_given() -> None:
    mine = OwnedBinding(acl(prefixed=True), "payments", "f")
    one = ObservedBindings(
        "seen", frozenset({acl(), Binding("topic", ALL, "User:a", "ALL", "DENY", "10.0.0.1")}), (mine,)
    )
    assert ObservedBindings.from_json(one.to_json()) == one
    declared: Flow = flow()
    assert declared.acls


def test_what_is_destroyed_takes_its_acls_along() -> None:
    declared = topology()
    here = source(acl(), acl("users", who="bob"))
    after = carried_out(plan_of(declared, here, target()), target())
    (gone,) = destroy_plan(declared, {WEST: after}, [WEST], ["us-east.orders"]).clusters
    (revoked,) = [step for step in gone.steps if isinstance(step, RevokeAcl)]
    assert (str(revoked.binding), revoked.with_topic) == ("User:alice READ on topic us-east.orders", True)
    whole = destroy_plan(declared, {WEST: after}, [WEST])
    assert len([step for step in whole.steps if isinstance(step, RevokeAcl)]) == 2
    empty = carried_out(whole, after)
    assert (empty.acls.bindings, empty.acls.owned) == (frozenset(), ())


def test_what_is_pruned_takes_its_acls_along() -> None:
    here = source(acl())
    after = carried_out(plan_of(topology(), here, target()), target())
    later = topology(flow(include=["users"]))
    observed = {EAST: here, WEST: after}
    steps = pruned(plan_of(later, here, after), later, observed).steps
    assert [type(step) for step in steps] == [RevokeAcl, DeleteTopic]
    assert pruned(plan_of(topology(flow(include=["users"])), here, after), later, observed).to_delete == 2


def test_what_others_granted_on_copies_goes_where_somebody_allows_it() -> None:
    declared, here = topology(), source(acl())
    after = carried_out(plan_of(declared, here, target()), target())
    added = (
        acl("us-east.orders", "WRITE", "mallory"),
        acl("us-east.users", who="mallory"),
        acl("others", who="mallory"),
    )
    wide = acl("us-east", "WRITE", "mallory", prefixed=True)
    there = replace(after, acls=replace(after.acls, bindings=after.acls.bindings | {*added, wide}))
    observed = {EAST: here, WEST: there}
    plan = plan_of(declared, here, there)
    assert plan.is_empty

    clean = cleared(plan, declared, observed)
    assert [step.binding for step in clean.steps if isinstance(step, RevokeAcl)] == list(added[:2])
    assert (clean.to_delete, clean.deletions("acl"), clean.deletions("topic")) == (2, 2, 0)
    allowed: list[dict[DeletionKind, int]] = [{}, {"topic": 9}, {"acl": 1}]
    for one in allowed:
        with pytest.raises(Refused) as refused:
            check_deletions(clean, observed, one)
        (problem,) = refused.value.problems
        assert (problem.code, "allow it: `--allow-delete acl=2`" in problem.remedy) == ("AB420", True)
    check_deletions(clean, observed, {"acl": 2})
    assert plan_json(clean)["clusters"][0]["steps"][0]["foreign"] is True
    assert drift_of(declared, {WEST: carried_out(clean, there)}) == ()


@pytest.mark.parametrize("way", ["away", "hidden"])
def test_nothing_goes_with_whatever_permission_where_originals_were_not_seen(way: str) -> None:
    declared, here = topology(flow(failed_over=way == "away")), source(acl())
    after = carried_out(plan_of(topology(), here, target()), target())
    there = replace(
        after, acls=replace(after.acls, bindings=after.acls.bindings | {acl("us-east.orders", who="carol")})
    )
    unseen = ObservedCluster.away(EAST) if way == "away" else replace(here, acls=ObservedBindings("hidden"))
    observed = {EAST: unseen, WEST: there}
    plan = plan_of(declared, unseen, there)
    assert plan.is_empty
    assert pruned(plan, declared, observed).is_empty
    assert cleared(plan, declared, observed).is_empty
    # What stands stays declared for a provisioner that takes what is not declared for one to delete.
    assert {one.binding for one in whole_acls(declared, observed, (WEST,))} == {one.binding for one in after.acls.owned}
    assert [one.name for one in whole_topics(declared, observed, (WEST,))] == sorted(after.topics)


def test_what_follows_originals_needs_no_allowance() -> None:
    copy = acl("us-east.orders")
    mine = OwnedBinding(copy, topology().name, "us-east-eu-west")
    there = target(copy, owned=[mine])
    plan = plan_of(topology(), source(), there)
    assert (plan.to_delete, plan.deletions("acl")) == (1, 0)
    check_deletions(plan, {EAST: source(), WEST: there}, {})


def test_what_is_ours_once_the_steps_are_carried_out() -> None:
    gone = owned(acl("us-east.orders", "DESCRIBE"))
    there = target(acl("us-east.orders"), gone.binding, acl("us-east.users", who="bob"), owned=[gone])
    found = ours(source(acl("orders"), acl("users")), there)
    # READ of orders stands without our record, and is somebody else's; what the source no longer has is revoked.
    assert found == [acl("us-east.users")]
    assert ours(source(acl("orders"), acl("orders", "DESCRIBE")), there) == [gone.binding]


def test_what_nobody_can_look_up_stays_ours() -> None:
    kept = owned(acl("us-east.orders"))
    there = target(kept.binding, owned=[kept])
    hidden = replace(source(), acls=ObservedBindings("hidden"))
    assert ours(hidden, there) == [kept.binding]
    # Where the target itself shows nothing, what is on record is all there is to go by.
    unseen = replace(there, acls=ObservedBindings("hidden", owned=(kept,)))
    assert ours(source(), unseen) == [kept.binding]
    off = replace(there, acls=ObservedBindings("off", owned=(kept,)))
    assert ours(source(acl("orders")), off) == []


def test_where_we_may_not_alter_what_stands_and_is_ours_stays_ours() -> None:
    kept = owned(acl("us-east.orders"))
    there = replace(target(kept.binding, owned=[kept]), access=Access(operations=frozenset({"DESCRIBE"})))
    assert ours(source(acl("users")), there) == [kept.binding]


def owned(binding: Binding) -> OwnedBinding:
    return OwnedBinding(binding, "payments", "us-east-eu-west")


def ours(at_source: ObservedCluster, at_target: ObservedCluster) -> list[Binding]:
    found = whole_acls(topology(), {EAST: at_source, WEST: at_target}, [WEST])
    assert {(one.cluster, one.flow) for one in found} <= {(WEST, "us-east-eu-west")}
    return [one.binding for one in found]
