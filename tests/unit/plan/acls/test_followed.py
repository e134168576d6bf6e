"""Copies whose originals refuse somebody: named one by one, and what an older release granted wider is taken back."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from reconciler.model.acls.binding import Binding, ObservedBindings, OwnedBinding, Permission
from reconciler.model.acls.requirements import ALL, ResourcePattern
from reconciler.model.connection.security import Security
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import AclChange, CreateTopic, GrantAcl, Plan, RevokeAcl
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.operate.flows.following import only_following
from reconciler.plan.acls.bindings import unfollowed
from reconciler.plan.acls.failover_acls import failover_acl_plan
from reconciler.plan.build import with_acls_of
from reconciler.plan.copies.offsets import choices
from reconciler.plan.guardrails.left_out import unmade, without
from reconciler.plan.part import narrowed, only
from reconciler.report.text.words import acl_reason
from tests.unit.plan.facts import EAST, WEST, carried_out, cluster, flow, plan_of, topic, topology

NORTH = "north"


def acl(
    name: str = "*",
    operation: str = "READ",
    who: str = "User:alice",
    permission: Permission = "ALLOW",
    host: str = "*",
    prefixed: bool = False,
) -> Binding:
    return Binding("topic", ResourcePattern(name, prefixed), who, operation, permission, host)


def deny(name: str = "pay.salaries", operation: str = "READ", who: str = "User:*", host: str = "*") -> Binding:
    return acl(name, operation, who, "DENY", host)


def source(*bindings: Binding, topics: Collection[str] = ("pay", "pay.salaries"), alias: str = EAST) -> ObservedCluster:
    here = cluster(alias, *(topic(name) for name in topics))
    return replace(here, acls=ObservedBindings("seen", frozenset(bindings)))


def with_ranges(here: ObservedCluster) -> ObservedCluster:
    return replace(here, acls=replace(here.acls, takes_ranges=True))


def target(*bindings: Binding, owned: Collection[OwnedBinding] = (), topics: Collection[str] = ()) -> ObservedCluster:
    here = cluster(WEST, *(topic(name) for name in topics))
    return replace(here, acls=ObservedBindings("seen", frozenset(bindings), tuple(owned)))


def steps(plan: Plan) -> list[str]:
    words: dict[type[object], str] = {GrantAcl: "+", RevokeAcl: "-", CreateTopic: "make"}
    return [f"{words[type(step)]} {step.name}" for step in plan.steps if type(step) in words]


def changes(declared: Topology, *clusters: ObservedCluster) -> list[str]:
    return [step for step in steps(plan_of(declared, *clusters)) if not step.startswith("make")]


def notes(plan: Plan) -> list[str]:
    return [notice.message for notice in plan.clusters[0].left_alone]


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        ([], ["READ pay", "READ pay.salaries"]),
        ([deny()], ["READ pay", "DESCRIBE pay.salaries"]),
        ([deny(operation="ALL")], ["READ pay"]),
        ([deny("*")], ["DESCRIBE pay", "DESCRIBE pay.salaries"]),
        ([deny(who="User:alice")], ["DENY User:alice READ pay.salaries", "READ pay", "READ pay.salaries"]),
        ([deny(who="Group:alice")], ["DENY Group:alice READ pay.salaries", "READ pay", "READ pay.salaries"]),
        (
            [deny(host="10.1.2.3")],
            ["DENY User:alice READ pay.salaries, from 10.1.2.3", "READ pay", "READ pay.salaries"],
        ),
        ([deny(operation="DESCRIBE")], ["DENY User:alice DESCRIBE pay.salaries", "READ pay", "READ pay.salaries"]),
        ([deny(operation="WRITE")], ["READ pay", "READ pay.salaries"]),
        (
            [Binding("cluster", ResourcePattern("kafka-cluster"), "User:*", "ALL", "DENY")],
            ["READ pay", "READ pay.salaries"],
        ),
    ],
)
def test_what_is_refused_at_the_source_is_not_granted_at_the_target(
    refused: list[Binding], expected: list[str]
) -> None:
    found = changes(topology(), source(acl(), *refused), target())
    short = [one.replace("topic us-east.", "").replace(" on ", " ").removeprefix("+ ") for one in found]
    assert [one.removeprefix("User:alice ") for one in short] == expected


def test_who_is_allowed_from_one_host_is_allowed_from_there_alone() -> None:
    here = source(acl("pay", host="10.1.2.3"), acl("pay", who="User:ANONYMOUS"), acl("pay", who="Group:staff"))
    assert changes(topology(), here, target()) == [
        "+ Group:staff READ on topic us-east.pay",
        "+ User:ANONYMOUS READ on topic us-east.pay",
        "+ User:alice READ on topic us-east.pay, from 10.1.2.3",
    ]


NET = "10.0.0.0/8"


@pytest.mark.parametrize(
    ("rules", "with_both", "with_source", "with_target"),
    [
        ([acl("pay", host=NET)], [f"READ pay, from {NET}"], [], []),
        (
            [acl("pay"), deny("pay", host=NET)],
            [f"DENY READ pay, from {NET}", "READ pay"],
            ["DESCRIBE pay"],
            ["READ pay"],
        ),
        (
            [acl("pay"), deny("pay", who="User:alice", host=NET)],
            [f"DENY READ pay, from {NET}", "READ pay"],
            ["DESCRIBE pay"],
            ["READ pay"],
        ),
        ([acl("pay"), deny("pay", who="User:bob", host=NET)], None, ["READ pay"], ["READ pay"]),
        ([acl("pay", host="10.1.2.3"), deny("pay", host=NET)], ["DESCRIBE pay, from 10.1.2.3"], None, None),
        ([acl("pay", host="11.1.2.3"), deny("pay", host=NET)], ["READ pay, from 11.1.2.3"], None, None),
        ([acl("pay", host=NET), deny("pay", host="10.9.0.0/8")], [f"DESCRIBE pay, from {NET}"], [], []),
        (
            [acl("pay", host=NET), deny("pay", host="10.1.0.0/16")],
            ["DENY READ pay, from 10.1.0.0/16", f"READ pay, from {NET}"],
            [],
            [],
        ),
        ([acl("pay", operation="WRITE", host=NET), acl("pay")], ["READ pay"], ["READ pay"], ["READ pay"]),
    ],
)
def test_ranges_of_addresses_are_followed_where_both_clusters_take_them_and_widen_nothing_elsewhere(
    rules: list[Binding], with_both: list[str] | None, with_source: list[str] | None, with_target: list[str] | None
) -> None:
    here, there = source(*rules), target()
    found = {
        "both": (with_both, with_ranges(here), with_ranges(there)),
        "source": (with_source, with_ranges(here), there),
        "target": (with_target, here, with_ranges(there)),
    }
    for which, (expected, one, other) in found.items():
        short = [
            step.removeprefix("+ ").replace("User:alice ", "").replace("topic us-east.", "").replace(" on ", " ")
            for step in changes(topology(), one, other)
        ]
        if expected is not None:
            assert [step for step in short if "User:bob" not in step] == expected, which


def test_a_range_that_is_not_followed_is_noted_with_the_version_that_takes_it() -> None:
    here = source(acl("pay", host=NET), acl("pay"), deny("pay", host=NET))
    assert "matches no client at their cluster, whose metadata.version is below 4.4" in "".join(
        notes(plan_of(topology(), here, with_ranges(target())))
    )
    told = "".join(notes(plan_of(topology(), with_ranges(here), target())))
    assert "it is about a range of addresses, which the target takes as of metadata.version 4.4" in told
    assert "a part of it is denied to a range of addresses, which the target takes as of metadata.version 4.4" in told


def test_everybody_is_not_granted_what_everybody_is_denied_from_a_host() -> None:
    here = source(acl("pay", who="User:*"), deny("pay", host="10.1.2.3"))
    plan = plan_of(topology(), here, target())
    assert [step.name for step in plan.steps if isinstance(step, AclChange)] == ["User:* DESCRIBE on topic us-east.pay"]
    assert "User:* READ on topic pay (User:* is denied a part of it on originals of us-east.pay" in "".join(notes(plan))


def test_a_flow_that_follows_no_acls_is_not_opened_by_one_beside_it() -> None:
    vault = flow(name="vault", include=["vault.*"], acls=False)
    declared = topology(flow(include=["pay.*"]), vault)
    here = source(acl(), topics=("pay", "vault.keys"))
    assert changes(declared, here, target()) == ["+ User:alice READ on topic us-east.pay"]


def test_who_reads_a_copy_of_several_originals_must_be_allowed_on_all_of_them() -> None:
    identity = ReplicationPolicy("identity")
    declared = topology(flow(policy=identity), flow(NORTH, policy=identity))
    east = source(acl("pay"), acl("pay", who="User:bob"), acl("pay", who="User:carol"), topics=("pay",))
    north = source(acl("pay"), acl(who="User:bob", operation="DESCRIBE"), topics=("pay",), alias=NORTH)
    plan = plan_of(declared, east, north, target())
    assert [step for step in steps(plan) if "make" not in step] == [
        "+ User:alice READ on topic pay",
        "+ User:bob DESCRIBE on topic pay",
    ]
    assert "hold other originals as well" in " ".join(notes(plan))
    # One flow that follows none closes the copy; a source that nobody can ask lets stand what stands.
    closed = topology(flow(policy=identity), flow(NORTH, policy=identity, acls=False))
    assert changes(closed, east, north, target()) == []
    after = carried_out(plan, target())
    hidden = replace(north, acls=ObservedBindings("hidden"))
    more = source(acl("pay"), acl("pay", who="User:dora"), topics=("pay",))
    assert changes(declared, more, hidden, after) == ["- User:bob DESCRIBE on topic pay"]


def former(binding: Binding, name: str = "payments", flow: str = "us-east-eu-west") -> OwnedBinding:
    return OwnedBinding(binding, name, flow)


WIDE = acl("us-east.", prefixed=True)


def with_copies(declared: Topology, here: ObservedCluster, *wide: Binding) -> ObservedCluster:
    """The target after an apply of what has no ACLs yet, where an older release has granted some."""
    bare = replace(here, acls=ObservedBindings("seen"))
    after = carried_out(plan_of(declared, bare, target()), target())
    owned = tuple(former(one) for one in wide)
    return replace(after, acls=ObservedBindings("seen", frozenset(wide), owned))


def test_what_was_granted_on_a_prefix_is_replaced_before_anything_is_made() -> None:
    before = source(acl(), deny(operation="ALL"))
    there = with_copies(topology(), before, WIDE)
    later = source(acl(), deny(operation="ALL"), topics=("pay", "pay.salaries", "pay.new"))
    plan = plan_of(topology(), later, there)
    assert steps(plan) == [
        "+ User:alice READ on topic us-east.pay",
        "- User:alice READ on topic us-east.* (prefixed)",
        "make us-east.pay.new",
        "+ User:alice READ on topic us-east.pay.new",
    ]
    (taken,) = [step for step in plan.steps if isinstance(step, RevokeAcl)]
    assert acl_reason(taken) == (
        "it covers more than copies; each copy of flow us-east-eu-west has what its original allows"
    )
    after = carried_out(plan, there)
    assert plan_of(topology(), later, after).is_empty
    assert {str(one.binding) for one in after.acls.owned} == {
        "User:alice READ on topic us-east.pay",
        "User:alice READ on topic us-east.pay.new",
    }


def test_a_plan_for_one_topic_takes_a_prefix_back_before_it_makes_one_beneath_it() -> None:
    here = source(acl())
    there = with_copies(topology(), here, WIDE)
    later = source(acl(), topics=("pay", "pay.salaries", "new", "newer"))
    observed = {EAST: later, WEST: there}
    part = plan_of(narrowed(topology(), observed, [WEST], ["us-east.new"]), later, there)
    assert steps(only(part, ["us-east.new"], topology(), observed)) == [
        "+ User:alice READ on topic us-east.pay",
        "+ User:alice READ on topic us-east.pay.salaries",
        "- User:alice READ on topic us-east.* (prefixed)",
        "make us-east.new",
    ]
    part = plan_of(narrowed(topology(), observed, [WEST], ["us-east.pay"]), later, there)
    assert steps(only(part, ["us-east.pay"], topology(), observed)) == []


def test_the_loop_of_one_flow_takes_a_prefix_back_for_all_copies_beneath_it() -> None:
    declared = topology(flow(include=["pay.*"]), flow(name="users", include=["users"]))
    here = source(acl(), topics=("pay", "users"))
    there = with_copies(declared, here, WIDE)
    later = source(acl(), topics=("pay", "users", "pay.new"))
    plan = plan_of(declared, later, there)
    for name in ("us-east-eu-west", "users"):
        left = only_following(plan, name, there.owned, {"us-east-eu-west", "users"})
        assert steps(left)[:3] == [
            "+ User:alice READ on topic us-east.pay",
            "+ User:alice READ on topic us-east.users",
            "- User:alice READ on topic us-east.* (prefixed)",
        ]


def test_what_was_granted_on_a_prefix_is_narrowed_to_its_copies_where_originals_are_not_seen() -> None:
    declared = topology(flow(include=["pay.*"]), flow(name="vault", include=["vault"], acls=False))
    here = source(acl(), topics=("pay", "vault"))
    there = with_copies(declared, here, WIDE)
    hidden = replace(here, acls=ObservedBindings("hidden"))
    narrow = ["+ User:alice READ on topic us-east.pay", "- User:alice READ on topic us-east.* (prefixed)"]
    assert changes(declared, hidden, there) == narrow
    assert changes(declared, hidden, carried_out(plan_of(declared, hidden, there), there)) == []
    # So it is where its flow does not run any more.
    rest = topology(flow(include=["pay.*"], enabled=False), flow(name="vault", include=["vault"], acls=False))
    assert changes(rest, here, there) == narrow
    assert changes(rest, here, carried_out(plan_of(rest, here, there), there)) == []


def test_a_failback_takes_back_writing_that_was_granted_on_a_prefix() -> None:
    declared: Topology = topology(flow(failed_over=True))
    here = source(acl(operation="WRITE"))
    wide = acl("us-east.", "WRITE", prefixed=True)
    there = with_copies(topology(), here, wide)
    back = failover_acl_plan(declared, {EAST: here, WEST: there}, "us-east-eu-west", failed_over=False)
    assert steps(back) == ["- User:alice WRITE on topic us-east.* (prefixed)"]
    over = failover_acl_plan(declared, {EAST: here, WEST: there}, "us-east-eu-west", failed_over=True)
    assert steps(over) == [
        "+ User:alice WRITE on topic us-east.pay",
        "+ User:alice WRITE on topic us-east.pay.salaries",
        "- User:alice WRITE on topic us-east.* (prefixed)",
    ]


def test_readers_stay_while_a_plan_can_do_nothing_for_their_copy() -> None:
    here = source(acl())
    there = carried_out(plan_of(topology(), here, target()), target())
    observed = {EAST: here, WEST: there}
    reasons = {"us-east-eu-west": {"pay": "not allowed now"}}
    reduced = without(topology(), reasons)
    plan = plan_of(reduced, here, there)
    assert steps(plan) == ["- User:alice READ on topic us-east.pay"]
    assert unmade(topology(), observed, reasons) == {"us-east-eu-west": {}}
    assert steps(with_acls_of(plan, without(topology(), unmade(topology(), observed, reasons)), observed)) == []
    assert unmade(topology(), {EAST: here, WEST: target()}, reasons) == reasons


def test_another_topologys_prefix_is_told_and_never_touched() -> None:
    here = source(acl("pay"))
    there = carried_out(plan_of(topology(), here, target()), target())
    acls = replace(
        there.acls, bindings=there.acls.bindings | {WIDE}, owned=(*there.acls.owned, former(WIDE, "another"))
    )
    plan = plan_of(topology(), here, replace(there, acls=acls))
    assert steps(plan) == []
    (told,) = [notice.message for notice in plan.clusters[0].warnings]
    assert told.startswith(
        "topology another has granted ACLs on us-east.* (prefixed), which covers us-east.pay and 1 m"
    )


def test_what_is_not_followed_is_told_once_for_each_reason_whatever_their_number() -> None:
    declared: Topology = topology()
    west = replace(declared.clusters[WEST], security=Security("SASL_PLAINTEXT", "PLAIN", "mirror"))
    declared = replace(declared, clusters={**declared.clusters, WEST: west})
    writers = [acl("pay", "WRITE", f"User:w{number:04}") for number in range(1000)]
    here = source(*writers, acl("pay", "ALL", "User:bob"), acl(who="User:mirror"), deny(), acl(), acl("none", "WRITE"))
    plan = plan_of(declared, here, target())
    many, mine, denied, refused = sorted(notes(plan), key=lambda said: ("1001" not in said, said))
    assert many.startswith(
        "1001 ACLs of originals are not followed, or in part: User:bob ALL on topic pay; User:w0000 "
    )
    assert many.endswith(
        " and 998 more (READ, DESCRIBE and DESCRIBE_CONFIGS alone follow, also of ALL: only the "
        "replicator changes copies)"
    )
    assert "DENY User:* READ on topic pay.salaries (User:* is denied, and so would be the replicator" in mine + denied
    assert (
        "User:mirror READ on topic * (all) (it is about the principal that replicates at the target)"
        in denied + refused
    )
    assert (
        "User:alice READ on topic * (all) (User:* is denied it on originals of us-east.pay.salaries)"
        in mine + denied + refused
    )
    closed: Flow = flow(acls=False)
    chosen = choices(topology(closed), {EAST: here, WEST: target()}, [WEST])
    (said,) = unfollowed(topology(closed), {EAST: here, WEST: target()}, chosen, WEST)
    assert said.message.endswith("(a flow that fills us-east.pay and 1 more copies has acls: false)")


def test_nothing_is_granted_on_a_topic_of_another_owner_or_one_that_is_not_made() -> None:
    here = source(acl(), topics=("pay",))
    there = with_copies(topology(), here)
    stolen = replace(there, topics={**there.topics, "us-east.pay": topic("us-east.pay", topic_id="made-anew")})
    observed = {EAST: here, WEST: stolen}
    assert with_acls_of(plan_of(topology(), here, there), topology(), observed).steps == ()
    assert changes(topology(flow(failed_over=True)), here, target()) == [], "nothing is made for it"


def test_copies_without_acls_may_be_open_where_brokers_have_it_set() -> None:
    here = source(acl(), deny(operation="ALL"))
    there = replace(target(), acls=replace(target().acls, may_be_open=True))
    told = [notice.message for notice in plan_of(topology(), here, there).clusters[0].warnings]
    assert [said.partition(",")[0] for said in told] == ["allow.everyone.if.no.acl.found is set: unless to false"]
    assert "as us-east.pay.salaries" in told[0]
    closed = acl("us-east.", "READ", "User:ops", prefixed=True)
    there = replace(there, acls=replace(there.acls, bindings=frozenset({closed})))
    assert not plan_of(topology(), here, there).clusters[0].warnings
    assert ALL.is_wide
