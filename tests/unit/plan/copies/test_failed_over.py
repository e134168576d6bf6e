"""What a plan does with a flow that is failed over: nothing to its copies, and their ACLs the other way round."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace

import pytest

from reconciler.model.acls.binding import Binding, ObservedBindings, OwnedBinding, Permission
from reconciler.model.acls.own_access import Access
from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.base.errors import Refused
from reconciler.model.declared.cluster import Replicator
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import AclChange, GrantAcl, Plan, RevokeAcl
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.recorded.declaration import digest_into
from reconciler.model.recorded.failover import Cut, FailedOver
from reconciler.model.recorded.placed import Placed
from reconciler.plan.acls.failover_acls import failover_acl_plan
from reconciler.plan.acls.requirements import needed_acls
from reconciler.plan.adopt import adopt_plan
from reconciler.plan.findings.drift import drift_of
from reconciler.plan.removal.deletion_limit import check_deletions
from reconciler.plan.removal.destroy import destroy_plan
from reconciler.plan.removal.prune import pruned
from reconciler.plan.whole import whole_topics
from tests.unit.plan.facts import EAST, WEST, carried_out, cluster, flow, plan_of, topic, topology

FLOW = f"{EAST}-{WEST}"
OVER = FailedOver(FLOW, "over", 1_800_000_000.0, "ops@host", {})
SINCE = "2027-01-15 08:00:00 UTC by ops@host"
MIRROR = "User:mirror"


def on_record(target: ObservedCluster, state: FailedOver = OVER) -> ObservedCluster:
    return replace(target, failed_over={state.flow: state})


def applied(source: ObservedCluster, declared: Topology | None = None) -> ObservedCluster:
    """The target after an apply that found nothing there."""
    declared, target = declared or topology(), cluster(WEST, internal=False)
    return carried_out(plan_of(declared, source, target), target)


def notices(plan: Plan) -> list[str]:
    return [f"{one.subject}: {one.message}" for part in plan.clusters for one in part.warnings]


@pytest.mark.parametrize("way", ["declared", "on record", "both"])
def test_nothing_is_made_grown_or_set_for_its_copies(way: str) -> None:
    target = applied(cluster(EAST, topic("orders")))
    source = cluster(EAST, topic("orders", partitions=12, configs={"retention.ms": "1"}), topic("users"))
    assert {type(step).__name__ for step in plan_of(topology(), source, target).steps} == {
        "AddPartitions",
        "AlterConfig",
        "CreateTopic",
    }
    declared = topology(flow(failed_over=way != "on record"))
    there = target if way == "declared" else on_record(target)
    plan = plan_of(declared, source, there)
    assert plan.is_empty
    (part,) = plan.clusters
    assert (part.flows, part.left_alone) == ((), ())
    assert part.declared is not None
    assert part.declared.digest == digest_into(declared, WEST), "digests are those of the file"
    assert plan.digest == declared.digest


def test_the_others_go_on() -> None:
    flows = (flow(include=["orders"], name="one"), flow(include=["users"], name="two"))
    declared, source = topology(*flows), cluster(EAST, topic("orders"), topic("users"))
    target = on_record(cluster(WEST), replace(OVER, flow="one"))
    plan = plan_of(declared, source, target)
    assert [step.name for step in plan.steps] == [f"{EAST}.users"]
    assert [one.name for one in plan.clusters[0].flows] == ["two"]


def test_what_a_cluster_does_not_allow_stops_no_plan_for_it() -> None:
    source = cluster(EAST, topic("orders"))
    target = applied(source)
    hidden = replace(target.topics[f"{EAST}.orders"], operations=frozenset({"READ"}))
    refusing = replace(target, topics={hidden.name: hidden})
    with pytest.raises(Exception, match="AB360"):
        plan_of(topology(), source, refusing)
    assert plan_of(topology(), source, on_record(refusing)).is_empty


def test_its_file_and_its_record_are_to_say_the_same() -> None:
    source = cluster(EAST, topic("orders"))
    target = applied(source)
    declared = topology(flow(failed_over=True))
    state = f"flow {FLOW}: failed over since {SINCE}: nothing is copied until `anabranch failback --flow {FLOW}`"
    left = "; its copies are left as they are"
    assert notices(plan_of(declared, source, on_record(target))) == [state + left]
    assert drift_of(declared, {WEST: on_record(target)}) == ()

    (_, undeclared) = notices(plan_of(topology(), source, on_record(target)))
    assert undeclared == (
        f"flow {FLOW}: not declared as failed over: declare `failed-over: true`, or `anabranch failback --flow {FLOW}`"
    )
    (found,) = drift_of(topology(), {WEST: on_record(target)})
    assert (found.kind, found.topic, found.field) == ("unmanaged", f"flow {FLOW}", "failed-over")
    assert (found.desired, found.found, found.remedy) == (None, f"since {SINCE}", undeclared.partition(": ")[2])

    (told, nobody) = notices(plan_of(declared, source, target))
    assert told == f"flow {FLOW}: failed over, as its file declares (failed-over: true): nothing is copied{left}"
    (found,) = drift_of(declared, {WEST: target})
    assert (found.kind, found.desired, found.found) == ("missing", "true", None)
    assert found.remedy == nobody.partition(": ")[2]
    assert f"`anabranch failover --flow {FLOW}`" in found.remedy


def test_what_people_change_on_its_copies_is_no_drift() -> None:
    target = applied(cluster(EAST, topic("orders")))
    changed = replace(target.topics[f"{EAST}.orders"], configs={"retention.ms": "1"}, partitions=9)
    declared, there = topology(flow(failed_over=True)), replace(target, topics={changed.name: changed})
    assert drift_of(topology(), {WEST: there}) != ()
    assert drift_of(declared, {WEST: on_record(there)}) == ()


def test_a_copy_whose_original_is_gone_is_not_told_to_be_left() -> None:
    target = applied(cluster(EAST, topic("orders")))
    gone = cluster(EAST)
    assert [one.subject for one in plan_of(topology(), gone, target).clusters[0].left_alone] == [f"{EAST}.orders"]
    (part,) = plan_of(topology(), gone, on_record(target)).clusters
    assert part.left_alone == ()
    assert [one.subject for one in part.warnings] == [f"flow {FLOW}"] * 2


def test_its_copies_are_neither_destroyed_nor_pruned_while_it_is_on_record() -> None:
    source = cluster(EAST, topic("orders"))
    target = applied(source)
    destroyed = destroy_plan(topology(), {WEST: target}, [WEST])
    check_deletions(destroyed, {WEST: target}, {"topic": 1})
    with pytest.raises(Refused) as caught:
        check_deletions(destroyed, {WEST: on_record(target)}, {"topic": 1})
    (problem,) = caught.value.problems
    assert (problem.code, problem.where, caught.value.exit_code) == ("AB436", f"{WEST}, topic {EAST}.orders", 4)
    assert SINCE in problem.message

    other = topology(flow(include=["users"], name="other"))
    seen = {EAST: cluster(EAST, topic("users")), WEST: on_record(target)}
    plan = pruned(plan_of(other, *seen.values()), other, seen)
    with pytest.raises(Refused) as caught:
        check_deletions(plan, seen, {"topic": 1})
    assert [problem.code for problem in caught.value.problems] == ["AB436"]
    assert f"flow {FLOW}: failed over since {SINCE}" in " ".join(notices(plan))


def test_nothing_is_adopted_for_it_and_a_provisioner_of_whole_topics_leaves_them_as_they_are() -> None:
    source = cluster(EAST, topic("orders", configs={"retention.ms": "1"}))
    strange = on_record(cluster(WEST, topic(f"{EAST}.orders")))
    assert adopt_plan(topology(), {EAST: source, WEST: strange}, [WEST]).is_empty

    target = on_record(applied(cluster(EAST, topic("orders"))))
    (whole,) = whole_topics(topology(), {EAST: source, WEST: target}, [WEST])
    assert whole.configs == target.topics[f"{EAST}.orders"].configs


def test_a_record_is_written_down_and_read_again() -> None:
    cut = Cut("orders", f"{EAST}.orders", "translated", ((3, 4), (0, 0)), notes=("a note", ""))
    put = Placed(frozenset({("orders", 0), ("orders", 2)}), {("orders", 1): None, ("payments", 0): 7})
    moved, returned = {"billing": put, "audit": Placed(is_whole=True)}, {"billing": Placed()}
    for state in (OVER, replace(OVER, cuts={"orders": cut}, moved=moved, returned=returned)):
        seen = on_record(cluster(WEST), state)
        assert ObservedCluster.from_json(json.loads(json.dumps(seen.to_json()))) == seen


def test_a_record_that_an_older_release_wrote_down_is_read() -> None:
    written = on_record(cluster(WEST)).to_json()
    del written["failed_over"][FLOW]["returned"]
    written["failed_over"][FLOW]["moved"] = ["audit", "billing"]
    (state,) = ObservedCluster.from_json(json.loads(json.dumps(written))).failed_over.values()
    assert state.moved == {"audit": Placed(is_whole=True), "billing": Placed(is_whole=True)}
    assert state.returned == {}


def test_under_another_name_it_would_be_no_longer_failed_over() -> None:
    source = cluster(EAST, topic("orders"))
    target = on_record(applied(source))
    with pytest.raises(Refused) as caught:
        plan_of(topology(flow(name="west-copy")), source, target)
    (problem,) = caught.value.problems
    assert (problem.code, f"failback --flow {FLOW}" in problem.remedy) == ("AB438", True)
    # Where it is deleted people's topic would be, whatever the flow is called now.
    cut = Cut("orders", f"{EAST}.orders", "identical", ((3, 3),))
    renamed = replace(OVER, flow="of-former-days", cuts={"orders": cut})
    destroyed = destroy_plan(topology(), {WEST: target}, [WEST])
    with pytest.raises(Refused) as caught:
        check_deletions(destroyed, {WEST: on_record(applied(source), renamed)}, {"topic": 1})
    assert [one.code for one in caught.value.problems] == ["AB436"]


def test_its_policy_stays_what_it_was() -> None:
    source = cluster(EAST, topic("orders"), topic("users"))
    cuts = {name: Cut(name, f"{EAST}.{name}", "identical", ((3, 3),)) for name in ("orders", "users")}
    target = on_record(applied(source), replace(OVER, cuts=cuts))
    assert plan_of(topology(), source, target).is_empty
    with pytest.raises(Refused) as caught:
        plan_of(topology(flow(policy=ReplicationPolicy("identity"))), source, target)
    (problem,) = caught.value.problems
    assert (problem.code, problem.where) == ("AB438", f"cluster {WEST} ({WEST}.example:9092), topic {EAST}.orders")


# --- ACLs ----------------------------------------------------------------------------------------------------------


def acl(
    name: str = "orders",
    operation: str = "WRITE",
    who: str = "alice",
    permission: Permission = "ALLOW",
    prefixed: bool = False,
) -> Binding:
    return Binding("topic", ResourcePattern(name, prefixed), f"User:{who}", operation, permission)


def seen(one: ObservedCluster, *bindings: Binding, owned: Collection[OwnedBinding] = ()) -> ObservedCluster:
    return replace(one, acls=ObservedBindings("seen", frozenset(bindings), tuple(owned)))


def acls(plan: Plan) -> list[str]:
    words = {GrantAcl: "+", RevokeAcl: "-"}
    return [f"{words[type(step)]} {step.binding}" for step in plan.steps if isinstance(step, AclChange)]


def followed(declared: Topology, target: ObservedCluster, *bindings: Binding) -> list[str]:
    source = seen(cluster(EAST, topic("orders"), topic("users")), *bindings)
    return acls(plan_of(declared, source, with_copies(declared, target)))


def with_copies(declared: Topology, target: ObservedCluster) -> ObservedCluster:
    """The target with what was copied before flows were failed over."""
    running = replace(declared, flows=tuple(replace(one, failed_over=False) for one in declared.flows))
    before = replace(target, failed_over={}, acls=ObservedBindings())
    source = cluster(EAST, topic("orders"), topic("users"))
    made = carried_out(plan_of(running, source, before), before)
    return replace(target, topics=made.topics, names=made.names, owned=made.owned)


@pytest.mark.parametrize(
    ("operation", "permission", "expected"),
    [
        ("WRITE", "ALLOW", ["WRITE"]),
        ("ALL", "ALLOW", ["DESCRIBE_CONFIGS", "READ", "WRITE"]),
        ("WRITE", "DENY", ["WRITE"]),
        ("ALL", "DENY", ["DESCRIBE", "DESCRIBE_CONFIGS", "READ", "WRITE"]),
        ("DELETE", "ALLOW", []),
        ("ALTER", "ALLOW", []),
    ],
)
def test_who_may_write_originals_may_write_copies(operation: str, permission: Permission, expected: list[str]) -> None:
    declared = topology(flow(failed_over=True))
    given = acl(operation=operation, permission=permission)
    found = followed(declared, seen(cluster(WEST)), given)
    assert found == [f"+ {acl(f'{EAST}.orders', one, permission=permission)}" for one in expected]
    assert followed(topology(), on_record(seen(cluster(WEST))), given) == found, "its record suffices"


def test_a_failover_that_has_only_begun_changes_no_acl() -> None:
    given, begun = acl(), replace(OVER, phase="ending")
    assert followed(topology(), on_record(seen(cluster(WEST)), begun), given) == []
    # What an older release has granted by then goes again.
    written = acl(f"{EAST}.orders")
    granted = seen(cluster(WEST), written, owned=[OwnedBinding(written, topology().name, FLOW)])
    assert followed(topology(), on_record(granted, begun), given) == [f"- {written}"]
    assert followed(topology(flow(failed_over=True)), on_record(granted, begun), given) == [], "its file suffices"

    declared, source = secured(flow()), cluster(EAST, topic("orders"))
    target = after_apply(declared, source)
    assert acls(plan_of(declared, source, on_record(target, begun))) == []
    assert acls(plan_of(declared, source, on_record(target))) != []
    called_off = failover_acl_plan(declared, {EAST: source, WEST: on_record(target, begun)}, FLOW, failed_over=False)
    assert acls(called_off) == []


def test_who_writes_a_prefix_of_originals_writes_the_copies_of_flows_that_are_failed_over_alone() -> None:
    over, other = flow(include=["orders"], name="one", failed_over=True), flow(include=["users"], name="two")
    everything = acl("*")
    assert followed(topology(over, other), seen(cluster(WEST)), everything) == [
        f"+ User:alice WRITE on topic {EAST}.orders"
    ]
    both = topology(over, replace(other, failed_over=True))
    assert followed(both, seen(cluster(WEST)), everything) == [
        f"+ User:alice WRITE on topic {EAST}.orders",
        f"+ User:alice WRITE on topic {EAST}.users",
    ]
    identity = topology(replace(over, policy=ReplicationPolicy("identity")))
    assert followed(identity, seen(cluster(WEST)), everything) == ["+ User:alice WRITE on topic orders"]


def secured(*flows: object) -> Topology:
    declared = topology(*flows)  # type: ignore[arg-type]
    west = replace(declared.clusters[WEST], replicator=Replicator(MIRROR))
    return replace(declared, clusters={**declared.clusters, WEST: west})


def test_our_own_principal_may_only_read_copies_meanwhile() -> None:
    def on_copies(declared: Topology) -> set[tuple[str, str]]:
        return {
            (one.pattern.name, one.operation)
            for one in needed_acls(declared, declared.flows)
            if one.alias == WEST and one.kind == "topic" and not one.pattern.name.startswith("anabranch")
        }

    copies = [name for name, operation in on_copies(topology(flow(include=["orders"]))) if operation == "DELETE"]
    assert copies == [f"{EAST}.orders"]
    reduced = on_copies(topology(flow(include=["orders"], failed_over=True)))
    assert {operation for name, operation in reduced if name == f"{EAST}.orders"} == {"READ", "DESCRIBE_CONFIGS"}


def after_apply(declared: Topology, source: ObservedCluster) -> ObservedCluster:
    target = seen(cluster(WEST, internal=False))
    return carried_out(plan_of(declared, source, target), target)


def test_a_failover_changes_what_is_about_its_flow_and_failback_changes_it_back() -> None:
    declared = secured(flow(include=["orders"]))
    source = seen(cluster(EAST, topic("orders")), acl(), acl(operation="READ", who="bob"))
    target = after_apply(declared, source)
    # What is left for the next apply is none of a failover's business.
    source = replace(source, acls=replace(source.acls, bindings=source.acls.bindings | {acl(operation="READ")}))
    observed = {EAST: source, WEST: target}
    there = failover_acl_plan(declared, observed, FLOW, True)
    copy = f"topic {EAST}.orders"
    gone = ["ALTER", "ALTER_CONFIGS", "CREATE", "WRITE"]
    assert acls(there)[0] == f"+ User:alice WRITE on {copy}"
    assert [one for one in acls(there) if one.startswith("-")] == [f"- {MIRROR} {one} on {copy}" for one in gone]
    assert all("READ" not in one or MIRROR in one for one in acls(there))
    assert there.to_put_in_force == ()

    over = on_record(carried_out(there, target))
    assert acls(failover_acl_plan(declared, {EAST: source, WEST: over}, FLOW, True)) == [], "it is done"
    assert acls(plan_of(declared, source, over)) == [f"+ User:alice READ on {copy}"], "an apply finds the rest"

    back = failover_acl_plan(declared, {EAST: source, WEST: over}, FLOW, False)
    assert f"- User:alice WRITE on {copy}" in acls(back)
    restored = carried_out(back, over)
    assert restored.acls.bindings == target.acls.bindings
    assert acls(failover_acl_plan(declared, {EAST: source, WEST: restored}, FLOW, False)) == []


def test_a_failover_that_is_declared_is_undone_all_the_same() -> None:
    declared = topology(flow(include=["orders"], failed_over=True))
    source = seen(cluster(EAST, topic("orders")), acl())
    copied = with_copies(declared, seen(cluster(WEST, internal=False)))
    target = on_record(carried_out(plan_of(declared, source, copied), copied))
    back = failover_acl_plan(declared, {EAST: source, WEST: target}, FLOW, False)
    assert acls(back) == [f"- User:alice WRITE on topic {EAST}.orders"]


def test_without_its_source_only_what_is_ours_is_withdrawn() -> None:
    declared = secured(flow(include=["orders"]))
    source = seen(cluster(EAST, topic("orders")), acl(), acl(operation="READ"))
    target = after_apply(declared, source)
    plan = failover_acl_plan(declared, {WEST: target}, FLOW, True)
    assert {one.partition(" ")[0] for one in acls(plan) if MIRROR not in one} == set()
    assert f"- {MIRROR} WRITE on topic {EAST}.orders" in acls(plan)
    assert notices(plan) == [
        f"flow {FLOW}: {EAST} was not read: the right to write to originals is not followed to the copies"
    ]


def test_what_another_flow_needs_stays_ours() -> None:
    """Both write below one prefix: what the other one needs is not withdrawn."""
    declared = secured(flow(include=["orders.*"], name="one"), flow(include=["orders-.*", "users"], name="two"))
    source = seen(cluster(EAST, topic("orders"), topic("orders-2"), topic("users")))
    target = after_apply(declared, cluster(EAST))
    gone = acls(failover_acl_plan(declared, {EAST: source, WEST: target}, "one", True))
    left = {f"- {MIRROR} WRITE on topic {EAST}.orders-* (prefixed)", f"- {MIRROR} WRITE on topic {EAST}.users"}
    assert not left & set(gone)


@pytest.mark.parametrize(
    ("acl_sight", "operations", "why"),
    [
        ("off", (), f"{WEST} has no authorizer"),
        ("hidden", (), "not allowed DESCRIBE on cluster"),
        ("seen", ("DESCRIBE",), "not allowed ALTER on cluster"),
    ],
)
def test_where_acls_cannot_be_changed_it_says_so(acl_sight: str, operations: tuple[str, ...], why: str) -> None:
    target = replace(
        cluster(WEST),
        acls=ObservedBindings(acl_sight),  # type: ignore[arg-type]
        access=Access(operations=frozenset(operations)),
    )
    source = seen(cluster(EAST, topic("orders")), acl())
    plan = failover_acl_plan(secured(flow()), {EAST: source, WEST: target}, FLOW, True)
    assert plan.is_empty
    (told,) = notices(plan)
    assert why in told
