"""What plans take away: never more than is ours by its id, nor than the declaration gives up, nor than was allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.base.errors import Refused
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.removals import DeleteTopic, DeletionKind, ForgetTopic
from reconciler.model.planning.steps import Plan
from reconciler.model.policies.policy import ReplicationPolicy
from reconciler.model.recorded.declaration import DESTROYED, DeclarationHistory, Declared, InForce
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.plan.build import build_plan
from reconciler.plan.removal.deletion_limit import check_deletions
from reconciler.plan.removal.destroy import destroy_plan
from reconciler.plan.removal.prune import obsolete, pruned
from tests.unit.plan.facts import EAST, INTERNAL, WEST, cluster, flow, topic, topology

NO_ID = "A" * 22


def owned(name: str, original: str = "", **changes: object) -> OwnedTopic:
    original = original or name.removeprefix("us-east.")
    made = OwnedTopic(
        *(name, f"id-of-{name}", "payments", "0123", f"{EAST}-{WEST}", EAST, original, f"id-of-{original}"),
        *(6, "identical", {}),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def target(*records: OwnedTopic, gone: tuple[str, ...] = (), **changes: object) -> ObservedCluster:
    topics = [topic(record.name) for record in records if record.name not in gone]
    return replace(cluster(WEST, *topics, owned=records), **changes)  # type: ignore[arg-type]


def destroyed(there: ObservedCluster, *only: str, declared: Topology | None = None) -> Plan:
    return destroy_plan(declared or topology(), {WEST: there}, [WEST], only)


def test_all_that_is_ours_is_destroyed_and_nothing_stays_in_force() -> None:
    entry = InForce("0123456789abcdef", 1_800_000_000.0, "ops@host")
    plan = destroyed(target(owned("us-east.a"), owned("us-east.b"), gone=("us-east.b",), in_force=entry))
    assert plan.steps == (
        DeleteTopic(WEST, "us-east.a", "id-of-us-east.a", "us-east-eu-west", EAST, "a", "destroyed"),
        ForgetTopic(WEST, "us-east.b", "us-east-eu-west", EAST, "b"),
    )
    assert (plan.to_add, plan.to_change, plan.to_delete) == (0, 1, 1)
    assert plan.to_put_in_force == ((WEST, DESTROYED),)
    (told,) = plan.clusters
    assert told.declared == Declared(DESTROYED, entry)
    assert [notice.subject for notice in told.left_alone] == [", ".join(sorted(INTERNAL))]


def test_where_nothing_is_ours_nothing_is_put_in_force() -> None:
    assert destroyed(target()).changes_nothing
    done = InForce(DESTROYED, 1_800_000_000.0, "ops@host")
    assert destroyed(target(in_force=done)).changes_nothing
    assert str(done) == "nothing is in force: the copies were destroyed on 2027-01-15 08:00:00 UTC by ops@host"


def test_what_is_not_ours_for_certain_is_left_alone() -> None:
    records = (
        owned("us-east.theirs", topology="billing"),
        owned("us-east.anew", topic_id="another"),
        owned("us-east.meant", topic_id=None),
        owned("us-east.old", topic_id=NO_ID),
        owned("anabranch.payments.status.internal"),
        owned("__consumer_offsets"),
        owned("mm2-offset-syncs.us-east.internal"),
    )
    there = target(*records)
    there = replace(there, topics={**there.topics, "us-east.old": topic("us-east.old", topic_id=NO_ID)})
    there = replace(there, names=there.names | {"us-east.foreign", "of.others"})
    plan = destroyed(there)
    assert plan.steps == ()
    told = {notice.subject: notice.message for notice in plan.clusters[0].left_alone}
    assert told.keys() == {*(one.name for one in records), "us-east.foreign", ", ".join(sorted(INTERNAL))}
    assert told["us-east.theirs"] == "the topology billing made it"
    assert "deleted and made again (topic id another then, id-of-us-east.anew now)" in told["us-east.anew"]
    assert "no ids" in told["us-east.old"]
    for name in (one.name for one in records):
        assert destroyed(there, name).steps == ()


def test_a_part_says_what_comes_back() -> None:
    plan = destroyed(target(owned("us-east.a"), owned("us-east.b")), "us-east.a")
    assert [step.name for step in plan.steps] == ["us-east.a"]
    (told,) = plan.clusters
    assert told.declared is None
    assert [notice.subject for notice in told.warnings] == ["us-east.a"]
    excluding = topology(flow(topics=Selection((".*",), ("a",))))
    assert destroyed(target(owned("us-east.a")), "us-east.a", declared=excluding).clusters[0].warnings == ()


def test_after_it_no_declaration_runs() -> None:
    history = DeclarationHistory((InForce("old", 1.0, "a@b"),)).followed_by(InForce(DESTROYED, 2.0, "a@b"))
    for digest in ("old", "new"):
        problem = history.objection(digest, "cluster west")
        assert problem is not None
        assert (problem.code, "nothing is in force" in problem.message) == ("AB411", True)
        assert "anabranch apply" in problem.remedy
    assert history.followed_by(InForce("old", 3.0, "a@b")).objection("old", "cluster west") is None


@pytest.mark.parametrize(
    ("flows", "reason"),
    [
        ([flow()], None),
        ([flow(enabled=False)], None),
        ([flow(include=("a",))], None),
        ([flow(include=("b.*",))], "not-taken"),
        ([flow(topics=Selection((".*",), ("a",)))], "not-taken"),
        ([flow(policy=ReplicationPolicy("identity"))], "renamed"),
        ([flow(policy=ReplicationPolicy(separator="-"))], "renamed"),
        ([flow(name="other")], None),
        ([flow(name="other", include=("b",))], "flow-gone"),
        ([flow(target="far"), flow("far", EAST, name="back")], "flow-gone"),
        # Its source may have another alias now.
        ([flow("us-two", WEST)], None),
        ([flow(WEST, "far", name=f"{EAST}-{WEST}")], None),
        # Where it goes to may have one: then it is asked for by the other flow.
        ([flow(EAST, WEST, name=f"{EAST}-far")], None),
    ],
)
def test_the_declaration_alone_decides_what_is_obsolete(flows: list[Flow], reason: str | None) -> None:
    assert obsolete(topology(*flows), WEST, owned("us-east.a")) == reason


def test_a_copy_of_several_originals_is_asked_for_by_any_of_them() -> None:
    merged = ReplicationPolicy("identity")
    flows = (flow(include=("b",), policy=merged), flow("us-two", WEST, include=("a",), policy=merged))
    record = owned("a", offsets="translated")
    assert obsolete(topology(*flows), WEST, record) is None
    # A copy with identical offsets has one original, and that one is excluded.
    assert obsolete(topology(*flows), WEST, replace(record, offsets="identical")) == "not-taken"
    assert obsolete(topology(flows[0], flow("us-two", WEST, include=("c",), policy=merged)), WEST, record) is not None


def prune(declared: Topology, there: ObservedCluster, *originals: str) -> Plan:
    observed = {EAST: cluster(EAST, *(topic(name) for name in originals)), WEST: there}
    return pruned(build_plan(declared, observed, [WEST]), declared, observed)


def test_pruning_deletes_behind_everything_else_and_tells_the_rest() -> None:
    declared = topology(flow(topics=Selection((".*",), ("a",))))
    there = target(owned("us-east.a"), owned("us-east.b"), owned("us-east.c", topic_id=None), owned("us-east.d"))
    plan = prune(declared, there, "a", "d", "new")
    assert isinstance(plan.steps[-1], DeleteTopic)
    assert [step.name for step in plan.steps if isinstance(step, DeleteTopic)] == ["us-east.a"]
    # The originals of b and c are gone: that is no wish.
    assert [notice.subject for notice in plan.clusters[0].left_alone] == ["us-east.b", "us-east.c"]
    foreign = target(owned("us-east.a", topic_id="another"), owned("us-east.d"))
    assert prune(declared, foreign, "d").to_delete == 0
    assert prune(declared, target(owned("us-east.a", topology="billing"), owned("us-east.d")), "d").to_delete == 0


def test_pruning_never_empties_a_target() -> None:
    there = target(owned("us-east.a"))
    with pytest.raises(Refused, match="AB422"):
        prune(topology(flow(include=("b",))), there, "a")
    with pytest.raises(Refused, match="AB422"):
        prune(topology(flow(enabled=False)), there, "a")


@given(deleted=st.integers(0, 30), others=st.integers(0, 300), allowed=st.integers(0, 40))
def test_no_more_is_deleted_than_was_allowed(deleted: int, others: int, allowed: int) -> None:
    records = [owned(f"us-east.{number}") for number in range(deleted)]
    kept = [owned(f"us-east.{number}", topic_id="another") for number in range(1000, 1000 + others)]
    there = target(*records, *kept)
    plan = destroyed(there)
    assert plan.to_delete == deleted
    limits: list[Mapping[DeletionKind, int]] = [{"topic": allowed}, *([{}] if deleted else [])]
    for limit in limits:
        if deleted <= limit.get("topic", 0):
            check_deletions(plan, {WEST: there}, limit)
            continue
        with pytest.raises(Refused) as raised:
            check_deletions(plan, {WEST: there}, limit)
        (problem,) = raised.value.problems
        assert problem.code == "AB420"
        assert problem.remedy == f"read the plan, then allow it: `--allow-delete topic={deleted}`"
        share = f"{deleted} of the {deleted + others} that are ours at eu-west"
        assert f"would be deleted, with all records: {share}" in problem.message
        assert ("no more than topic=" in problem.message) == ("topic" in limit)
        assert ("more than 5" in problem.message) == (deleted > 5)
        assert ("more than 10 %" in problem.message) == (deleted * 10 > deleted + others)


def test_whoever_destroys_is_not_asked_whether_the_declaration_is_meant() -> None:
    there = target(owned("us-east.a"), owned("us-east.b"))
    with pytest.raises(Refused) as raised:
        check_deletions(destroyed(there), {WEST: there}, {}, is_destroy=True)
    (problem,) = raised.value.problems
    assert problem.message == "2 topics would be deleted, with all records: 2 of the 2 that are ours at eu-west"
    assert problem.remedy == "read the plan, then allow it: `--allow-delete topic=2`"
