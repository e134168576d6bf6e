"""Copies that another tool declares (`create: false`): nothing is done to them, and what differs is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.base.errors import Refused
from reconciler.model.planning.observed import ObservedTopic
from reconciler.model.planning.steps import Plan
from reconciler.plan.acls.requirements import needed_acls
from reconciler.plan.adopt import adopt_plan
from reconciler.plan.build import build_plan
from reconciler.plan.copies.desired import desired_topics
from reconciler.plan.findings.drift import drift_of
from reconciler.plan.guardrails.left_out import hindered, left_out
from reconciler.plan.whole import whole_topics
from tests.unit.declare.declaring import HEAD, load
from tests.unit.plan.facts import EAST, WEST, cluster, flow, made, plan_of, record, topic, topology

SOURCE = cluster(EAST, topic("orders"))
DECLARED = topology(flow(create=False))
REMOTE = "us-east.orders"
(WANTED,) = desired_topics(topology(), {EAST: SOURCE, WEST: cluster(WEST)}, [WEST])


def there(**changes: Any) -> ObservedTopic:
    """The copy as another tool has declared it: with nothing set that brokers default to."""
    unseen = ("min.insync.replicas", "unclean.leader.election.enable")
    effective = {key: value for key, value in WANTED.configs.items() if key not in unseen}
    return replace(made(WANTED), **({"configs": {}, "effective": effective} | changes))


def planned(*copies: ObservedTopic, **fields: Any) -> Plan:
    return plan_of(DECLARED, SOURCE, replace(cluster(WEST, *copies), **fields))


def not_started(plan: Plan) -> list[str]:
    return [one.reason for one in plan.clusters[0].not_started]


def warned(plan: Plan) -> list[tuple[str, str]]:
    return [(one.subject, one.message) for one in plan.clusters[0].warnings if one.subject == REMOTE]


def test_a_topic_that_fits_is_copied_to_and_nothing_is_done_to_it() -> None:
    plan = planned(there())
    assert plan.is_empty
    assert not_started(plan) == []
    assert plan.clusters[0].flows[0].topics == 1
    assert plan.clusters[0].flows[0].offsets == "identical"
    (_, message), *more = warned(plan)
    assert more == []
    assert message == (
        "another tool declares it (create: false), and an apply leaves it: min.insync.replicas is not set, expected 2"
        "; unclean.leader.election.enable is not set, expected false"
    )
    # A flow that makes its copies touches none of others.
    with pytest.raises(Refused, match="AB401"):
        plan_of(topology(), SOURCE, cluster(WEST, there()))


def test_what_differs_is_said_each_time() -> None:
    unlike = there(
        partitions=8,
        replication_factor=2,
        configs={"retention.ms": "5"},
        effective={**there().effective, "message.timestamp.after.max.ms": "3600000"},
    )
    (_, message), *_ = warned(planned(unlike))
    for said in (
        "it has 8 partitions, expected 6",
        "it has 2 replicas, expected 3",
        "retention.ms is 5, expected 604800000",
        "message.timestamp.after.max.ms is 3600000, expected 9223372036854775807",
    ):
        assert said in message, message
    assert "cleanup.policy" not in message, "brokers default to it"
    as_wanted = there(configs=dict(WANTED.configs))
    assert warned(planned(as_wanted)) == []


@pytest.mark.parametrize(
    ("copies", "said"),
    [
        ((), "us-east.orders is not there, and flow us-east-eu-west makes none (create: false): have it made with 6"),
        ((there(partitions=5),), "us-east.orders has 5 partitions, and its original 6: have it grow"),
        (
            (there(effective={"compression.type": "zstd", "message.timestamp.type": "LogAppendTime"}),),
            "identical offsets could not be held in us-east.orders: message.timestamp.type is LogAppendTime, not "
            "CreateTime, compression.type is zstd, not producer",
        ),
    ],
)
def test_what_does_not_fit_is_not_started_and_left_out(copies: tuple[ObservedTopic, ...], said: str) -> None:
    plan = planned(*copies)
    assert plan.is_empty
    (reason,) = not_started(plan)
    assert reason.startswith(said)
    observed = {EAST: SOURCE, WEST: cluster(WEST, *copies)}
    found = left_out(DECLARED, observed, [WEST])
    assert said in found["us-east-eu-west"]["orders"]


def test_translated_offsets_take_any_codec() -> None:
    declared = topology(flow(create=False, offsets="translated"))
    gzip = there(effective={"compression.type": "gzip"})
    assert not_started(plan_of(declared, SOURCE, cluster(WEST, gzip))) == []


def test_a_running_flow_copies_to_it_and_is_hindered_by_nothing() -> None:
    observed = {EAST: SOURCE, WEST: cluster(WEST, there())}
    assert left_out(DECLARED, observed, [WEST]) == {}
    assert hindered(DECLARED, observed, [WEST]) == {}
    assert build_plan(DECLARED, observed, [WEST]).is_empty


def test_what_an_apply_made_once_is_left_alone_as_well() -> None:
    """A flow that makes its copies no longer: they stay, and no setting is put back."""
    copy = replace(made(WANTED), configs={**WANTED.configs, "retention.ms": "5"})
    ours = replace(cluster(WEST, copy, owned=[record(WANTED, topology())]))
    assert plan_of(DECLARED, SOURCE, ours).is_empty
    assert drift_of(DECLARED, {WEST: ours}) == ()
    assert drift_of(topology(), {WEST: ours})


def test_a_topic_of_another_topology_is_refused_as_before() -> None:
    theirs = replace(record(WANTED, topology()), topology="billing")
    with pytest.raises(Refused, match="AB401"):
        planned(there(), owned={REMOTE: theirs})


def test_other_commands_leave_it_alone() -> None:
    observed = {EAST: SOURCE, WEST: cluster(WEST, there())}
    assert whole_topics(DECLARED, observed, [WEST]) == ()
    assert drift_of(DECLARED, {WEST: cluster(WEST, there())}) == ()
    assert adopt_plan(DECLARED, observed, [WEST]).is_empty
    needed = needed_acls(DECLARED, DECLARED.flows)
    operations = {acl.operation for acl in needed if acl.pattern.covers(ResourcePattern(REMOTE))}
    assert operations & {"CREATE", "ALTER", "ALTER_CONFIGS"} == set()


@pytest.mark.parametrize(
    ("fields", "create", "acls"),
    [("", True, True), ("create: false", False, False), ("create: false, acls: true", False, True)],
)
def test_acls_of_such_copies_follow_only_where_a_file_says_so(
    tmp_path: Path, fields: str, create: bool, acls: bool
) -> None:
    (one,) = load(tmp_path, f"{HEAD}flows:\n- {{from: a, to: b{', ' + fields if fields else ''}}}\n").flows
    assert (one.create, one.acls) == (create, acls)
