"""A stack's state, brought in line with what the clusters have: what is forgotten, what is imported, what stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reconciler.model.acls.binding import Binding, ObservedBindings, OwnedBinding
from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.planning.desired import WholeAcl, WholeTopic
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.recorded.ownership import OwnedTopic
from stacks.names import ACL_TYPE, PROCESS_TYPE, TOPIC_TYPE, acl_name, name_in, name_of, type_in
from stacks.processes import ProcessInputs
from stacks.state import STACK_TYPE, Settled, Wanted, settle, stranger
from tests.unit.plan.facts import WEST, cluster, topic

URN = "urn:pulumi:dc2::anabranch::anabranch:index:Flow$"
PROVIDER = {"urn": "urn:pulumi:dc2::anabranch::pulumi:providers:kafka::eu-west", "type": "pulumi:providers:kafka"}
CONFIG = {"retention.ms": "5"}
RECORD = OwnedTopic("east.orders", "id", "payments", "d", "east-west", "east", "orders", "", 3, "identical", {})
READ = Binding("topic", ResourcePattern("east.orders"), "User:alice", "READ")


def whole(name: str, partitions: int = 3, **config: str) -> WholeTopic:
    return WholeTopic(WEST, name, "east-west", partitions, 2, config or CONFIG)


def entry(one: WholeTopic | WholeAcl, **fields: Any) -> dict[str, Any]:
    kind = TOPIC_TYPE if isinstance(one, WholeTopic) else ACL_TYPE
    made: dict[str, Any] = {"urn": f"{URN}{kind}::{name_of(one)}", "type": kind}
    if isinstance(one, WholeTopic):
        found = {"partitions": one.partitions, "replicationFactor": one.replication_factor, "config": dict(one.configs)}
        made["outputs"] = found
    return made | fields


def settled(
    resources: Sequence[dict[str, Any]],
    *,
    wanted: Sequence[WholeTopic] = (),
    acls: Sequence[WholeAcl] = (),
    revoked: Sequence[Binding] = (),
    there: ObservedCluster | None = None,
    **deployment: Any,
) -> Settled:
    observed = {WEST: there or cluster(WEST)}
    return settle(
        {"manifest": {}, "resources": list(resources), **deployment},
        Wanted(wanted, acls, [(WEST, one) for one in revoked], observed),
    )


def with_topics(*topics: WholeTopic) -> ObservedCluster:
    return cluster(WEST, *(topic(t.name, t.partitions, t.replication_factor, t.configs) for t in topics))


def with_acls(*bindings: Binding) -> ObservedCluster:
    return replace(cluster(WEST), acls=ObservedBindings("seen", frozenset(bindings)))


def kept(one: Settled) -> list[str]:
    return [name_in(resource["urn"]) for resource in one.deployment["resources"]]


def test_names_tell_everything_that_makes_another_resource() -> None:
    prefixed = replace(
        READ, pattern=ResourcePattern("east.", prefixed=True), operation="DESCRIBE_CONFIGS", permission="DENY"
    )
    assert acl_name(WEST, prefixed) == "eu-west/User:alice|*|DescribeConfigs|Deny|Topic|east.|Prefixed"
    urn = entry(WholeAcl(WEST, READ, "east-west"))["urn"]
    assert (name_in(urn), type_in(urn)) == (acl_name(WEST, READ), ACL_TYPE)


def test_a_state_that_agrees_stays_as_it_is() -> None:
    one = whole("east.orders")
    found = settled([PROVIDER, entry(one)], wanted=[one], there=with_topics(one))
    assert (found.is_changed, found.imported, found.known) == (False, frozenset(), frozenset({"eu-west/east.orders"}))
    assert kept(found) == ["eu-west", "eu-west/east.orders"]


def test_what_stands_and_is_not_known_is_imported_and_changed_after_where_it_differs() -> None:
    same, grows = whole("east.same"), whole("east.grows", 6)
    found = settled([], wanted=[same, grows, whole("east.new")], there=with_topics(same, replace(grows, partitions=3)))
    assert found.imported == {"eu-west/east.same", "eu-west/east.grows"}
    assert found.changing == {"eu-west/east.grows"}


def test_a_topic_that_is_not_there_any_more_is_forgotten() -> None:
    found = settled([entry(whole("east.orders"))], wanted=[whole("east.orders")])
    assert (kept(found), found.imported, found.is_changed) == ([], frozenset(), True)


def test_a_topic_that_is_not_declared_any_more_is_forgotten_and_not_deleted() -> None:
    one = whole("east.orders")
    assert kept(settled([PROVIDER, entry(one)], there=with_topics(one))) == ["eu-west"]


def test_a_topic_that_differs_from_what_the_stack_believes_is_imported_anew() -> None:
    one = whole("east.orders", 6)
    for there in (replace(one, partitions=4), replace(one, configs={}), replace(one, replication_factor=1)):
        found = settled([entry(one)], wanted=[one], there=with_topics(there))
        assert (kept(found), found.imported) == ([], frozenset({"eu-west/east.orders"}))
        assert found.changing == {"eu-west/east.orders"}


def test_what_an_interrupted_update_would_delete_or_was_making_is_forgotten() -> None:
    one = whole("east.orders")
    pending = [{"resource": entry(one), "type": "creating"}, {"resource": PROVIDER, "type": "updating"}]
    found = settled([entry(one, delete=True)], wanted=[one], there=with_topics(one), pending_operations=pending)
    assert (kept(found), found.imported) == ([], frozenset({"eu-west/east.orders"}))
    assert found.deployment["pending_operations"] == pending[1:]


def test_acls_are_kept_where_they_stand_and_are_declared_or_revoked() -> None:
    write = replace(READ, operation="DESCRIBE")
    acls = [WholeAcl(WEST, READ, "east-west"), WholeAcl(WEST, write, "east-west")]
    resources = [entry(acl) for acl in acls]
    assert kept(settled(resources, acls=acls, there=with_acls(READ))) == [acl_name(WEST, READ)]
    assert kept(settled(resources, acls=acls[:1], there=with_acls(READ, write))) == [acl_name(WEST, READ)]
    revoking = settled(resources, acls=acls[:1], revoked=[write], there=with_acls(READ, write))
    assert kept(revoking) == [acl_name(WEST, READ), acl_name(WEST, write)]


def test_acls_of_a_cluster_that_does_not_show_them_are_kept() -> None:
    acl = WholeAcl(WEST, READ, "east-west")
    there = replace(cluster(WEST), acls=ObservedBindings("hidden"))
    assert kept(settled([entry(acl)], acls=[acl], there=there)) == [acl_name(WEST, READ)]


def test_whose_a_stack_is() -> None:
    acl = WholeAcl(WEST, READ, "east-west")
    resources = [PROVIDER, entry(whole("east.orders")), entry(acl)]
    stack = {"urn": "urn:pulumi:dc2::anabranch::pulumi:pulumi:Stack::anabranch-dc2", "type": STACK_TYPE}

    def found(said: str | None, topics: Sequence[str], acls: Sequence[str], ours: str = "payments") -> str | None:
        owned = [replace(RECORD, topology=one) for one in topics]
        bindings = tuple(OwnedBinding(READ, one, "east-west") for one in acls)
        there = replace(cluster(WEST, owned=owned), acls=ObservedBindings("seen", owned=bindings))
        outputs = {"topology": said} if said else {"topics": "of an earlier release"}
        return stranger({"resources": [*resources, {**stack, "outputs": outputs}]}, ours, {WEST: there})

    assert found("payments", ["orders"], ["orders"]) is None
    assert found("orders", ["payments"], ["payments"]) == "orders"
    # Where the stack does not say it, records do.
    assert found(None, [], []) is None
    assert found(None, ["orders"], []) == "orders"
    assert found(None, [], ["orders"]) == "orders"
    assert found(None, [], ["orders", "payments"]) is None
    assert found(None, ["orders"], ["payments"]) is None
    assert stranger({}, "payments", {WEST: cluster(WEST)}) is None


def test_an_empty_stack_has_no_resources_at_all() -> None:
    one = whole("east.orders")
    wanted = Wanted([one], [], [], {WEST: with_topics(one)})
    found = settle({"manifest": {}}, wanted)
    assert (found.is_changed, found.imported) == (False, frozenset({"eu-west/east.orders"}))


def process_entry(name: str, **inputs: str) -> dict[str, Any]:
    return {"urn": f"urn:pulumi:dc2::anabranch::{PROCESS_TYPE}::{name}", "type": PROCESS_TYPE, "inputs": inputs}


def with_processes(running: Mapping[str, ProcessInputs] | None, **declared: ProcessInputs) -> Settled:
    """A state with two processes, one of them as former files declared it, settled."""
    state = {"resources": [process_entry("replicate", version="1"), process_entry("metrics", version="1")]}
    return settle(state, Wanted((), (), (), {}, declared, running))


def test_a_process_that_does_not_run_is_forgotten_and_one_that_runs_is_held_as_it_runs() -> None:
    found = with_processes({"replicate": {"version": "2"}}, replicate={"version": "2"}, metrics={"version": "2"})
    assert found.deployment["resources"] == [process_entry("replicate", version="2")]
    assert (found.is_changed, found.forgotten, found.corrected) == (True, 1, 1)
    # `up` records the other one when it is started.
    assert (found.missing, found.imported) == (frozenset({"metrics"}), frozenset())


def test_processes_of_another_machine_stay_as_they_are() -> None:
    found = with_processes(None, replicate={"version": "2"})
    assert kept(found) == ["replicate", "metrics"]
    assert (found.is_changed, found.missing) == (False, frozenset())


def test_what_is_missing_is_what_stands_and_is_declared() -> None:
    one, other = whole("east.orders"), whole("east.users")
    acl, gone = WholeAcl(WEST, READ, "east-west"), replace(READ, principal="User:bob")
    there = replace(with_topics(one), acls=ObservedBindings("seen", frozenset({READ})))
    found = settled([], wanted=[one, other], acls=[acl], revoked=[gone], there=there)
    assert found.missing == {name_of(one), name_of(acl)}
    assert settled([entry(one), entry(acl)], wanted=[one], acls=[acl], there=there).missing == frozenset()
