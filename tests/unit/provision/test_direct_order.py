"""In which order ACLs change and topics are made on a cluster, and what a failure keeps from being done."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclBinding, AclBindingFilter, AclPermissionType

from reconciler.model.acls.binding import Binding, ObservedBindings, OwnedBinding
from reconciler.model.acls.requirements import ResourcePattern
from reconciler.model.base.errors import Problem
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.outcome import Failure, Outcome
from reconciler.model.planning.steps import AclChange, CreateTopic, GrantAcl, Plan, RevokeAcl
from reconciler.provision import direct, grants, work
from reconciler.state.confluent import bindings, clients
from tests.unit.plan.facts import EAST, WEST, carried_out, cluster, plan_of, topic, topology

WIDE = Binding("topic", ResourcePattern("us-east.", prefixed=True), "User:alice", "READ")
EVERYTHING = Binding("topic", ResourcePattern("*"), "User:alice", "READ")


class Recorder:
    """Stands for the cluster: notes what is asked of it, and refuses what it is told to refuse."""

    def __init__(self, refused: Collection[str] = ()) -> None:
        self.refused = refused
        self.asked: list[str] = []

    def change(self, steps: Collection[AclChange]) -> Outcome:
        outcome = Outcome()
        for step in steps:
            self.asked.append(f"{'+' if isinstance(step, GrantAcl) else '-'} {step.binding.pattern}")
            if self.asked[-1] in self.refused:
                outcome.failed.append(Failure(step, Problem("AB314", "here", "is refused", "mend it")))
            else:
                outcome.done.append(step)
        return outcome

    def create_topics(self, topics: Mapping[str, DesiredTopic]) -> dict[str, Problem]:
        self.asked += [f"make {name}" for name in topics]
        problem = Problem("AB315", "here", "exists already", "plan again")
        return {name: problem for name in topics if f"make {name}" in self.refused}

    def await_topics(self, partitions: Mapping[str, int]) -> tuple[dict[str, str], dict[str, Problem]]:
        return {name: f"id-of-{name}" for name in partitions}, {}

    def lacking(self, _operations: object) -> dict[str, Problem]:
        return {}

    def add_partitions(self, _partitions: object) -> dict[str, Problem]:
        return {}

    def alter_configs(self, _changes: object) -> dict[str, Problem]:
        return {}

    def write(self, _records: object) -> None:
        """Keep nothing."""


def outcome_of(plan: Plan, recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    def stands_for(*_arguments: Any) -> Recorder:
        return recorder

    monkeypatch.setattr(work, "Admin", stands_for)
    monkeypatch.setattr(work, "Ownership", stands_for)
    monkeypatch.setattr(direct, "Grants", stands_for)
    monkeypatch.setattr(direct, "put_in_force", lambda *_arguments: None)
    return direct.DirectProvisioner(topology()).apply(plan)


@pytest.fixture
def plan() -> Plan:
    """One copy is there, beneath a prefix that an older release granted; another one is to be made."""
    before = cluster(EAST, topic("orders"))
    target = replace(cluster(WEST), acls=ObservedBindings("seen"))
    there = carried_out(plan_of(topology(), before, target), target)
    owned = OwnedBinding(WIDE, "payments", "us-east-eu-west")
    there = replace(there, acls=ObservedBindings("seen", frozenset({WIDE}), (owned,)))
    source = replace(
        cluster(EAST, topic("orders"), topic("users")), acls=ObservedBindings("seen", frozenset({EVERYTHING}))
    )
    return plan_of(topology(), source, there)


ORDER = ["+ us-east.orders", "- us-east.* (prefixed)", "make us-east.users", "+ us-east.users"]


def test_what_is_wide_goes_before_topics_come_and_what_is_on_them_after(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    assert outcome_of(plan, recorder, monkeypatch).is_complete
    assert recorder.asked == ORDER


def test_no_topic_is_made_beneath_what_could_not_be_revoked(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(["- us-east.* (prefixed)"])
    outcome = outcome_of(plan, recorder, monkeypatch)
    assert recorder.asked == ORDER[:2]
    assert [type(one.step) for one in outcome.failed] == [RevokeAcl]
    assert [(type(one.step), one.why) for one in outcome.skipped] == [
        (CreateTopic, "an ACL that covers it is to be revoked first, and was not"),
        (GrantAcl, "its topic could not be made"),
    ]


def test_nothing_is_granted_on_a_topic_that_could_not_be_made(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(["make us-east.users"])
    outcome = outcome_of(plan, recorder, monkeypatch)
    assert recorder.asked == ORDER[:3]
    assert [(type(one.step), one.why) for one in outcome.skipped] == [(GrantAcl, "its topic could not be made")]


class Controller:
    """Stands for a cluster's admin client: keeps ACLs in the order of requests, and refuses some."""

    def __init__(self, refused: Collection[tuple[str, AclPermissionType]] = ()) -> None:
        self.refused = refused
        self.asked: list[str] = []
        self.there: list[AclBinding] = []

    def create_acls(self, wanted: Iterable[AclBinding], **_options: object) -> dict[AclBinding, Future[None]]:
        return {one: self._answer("+", one) for one in wanted}

    def delete_acls(self, gone: Iterable[AclBindingFilter], **_options: object) -> dict[AclBindingFilter, Future[None]]:
        return {one: self._answer("-", one) for one in gone}

    def describe_acls(self, _filter: object, **_options: object) -> Future[list[AclBinding]]:
        found: Future[list[AclBinding]] = Future()
        found.set_result(self.there)
        return found

    def _answer(self, mark: str, one: Any) -> Future[None]:
        answer: Future[None] = Future()
        self.asked.append(f"{mark} {one.permission_type.name} {one.name}")
        if (mark, one.permission_type) in self.refused:
            answer.set_exception(KafkaException(KafkaError(KafkaError.INVALID_REQUEST)))
            return answer
        if mark == "+":
            self.there.append(one)
        answer.set_result(None)
        return answer


class Records:
    def write_bindings(self, _records: object) -> None:
        """Keep nothing."""

    def forget_bindings(self, _records: object) -> None:
        """Keep nothing."""


@pytest.mark.parametrize(
    ("refused", "asked", "failed"),
    [
        ([], ["+ DENY a", "+ ALLOW a", "+ ALLOW b", "- ALLOW c", "- DENY c"], []),
        ([("+", AclPermissionType.DENY)], ["+ DENY a", "+ ALLOW b", "- ALLOW c", "- DENY c"], ["DENY a", "ALLOW a"]),
        (
            [("-", AclPermissionType.ALLOW)],
            ["+ DENY a", "+ ALLOW a", "+ ALLOW b", "- ALLOW c"],
            ["ALLOW c", "DENY c"],
        ),
    ],
)
def test_what_is_denied_is_granted_first_and_revoked_last(
    refused: Collection[tuple[str, AclPermissionType]],
    asked: list[str],
    failed: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller = Controller(refused)
    monkeypatch.setattr(clients, "make", lambda *_arguments: controller)
    monkeypatch.setattr(grants, "Ownership", lambda _cluster, _topology: Records())

    def one(name: str) -> tuple[Binding, Binding]:
        allowed = Binding("topic", ResourcePattern(name), "User:*", "READ")
        return allowed, replace(allowed, principal="User:bob", permission="DENY")

    (allow, deny), (other, _), (gone, kept) = one("a"), one("b"), one("c")
    steps: list[AclChange] = [
        *(GrantAcl(WEST, b, "f") for b in (allow, other, deny)),
        *(RevokeAcl(WEST, b, "f") for b in (kept, gone)),
    ]
    outcome = grants.Grants(topology().clusters[WEST], "payments").change(steps)
    assert controller.asked == asked
    told = [failure.step for failure in outcome.failed]
    assert [
        f"{step.binding.permission} {step.binding.pattern}" for step in told if isinstance(step, AclChange)
    ] == failed
    assert bindings.to_kafka(other) in controller.there
