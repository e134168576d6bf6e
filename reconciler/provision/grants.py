"""Grant and revoke ACLs in batches, with a record of what is ours before and after.

Called by provisioners. The record of an ACL is written before it is granted and removed after it is
revoked, so that a kill in between leaves no ACL of ours without a record.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from reconciler.model.acls.binding import Binding, OwnedBinding, Permission
from reconciler.model.base.errors import AnabranchError, Problem
from reconciler.model.base.progress import Progress
from reconciler.model.declared.cluster import Cluster
from reconciler.model.planning.outcome import Failure, Outcome
from reconciler.model.planning.steps import AclChange, GrantAcl, RevokeAcl
from reconciler.provision.changes import failed, portions
from reconciler.state.confluent import bindings, clients
from reconciler.state.ownership import Ownership

ANSWER_SECONDS = 30.0
VISIBLE_SECONDS = 30.0
AT_ONCE = 2000
"""ACLs in one request; a controller commits at most 10,000 at once (`QuorumController`)."""

_PAUSE_SECONDS = 0.1

Problems = dict[Binding, Problem]
Asked = TypeVar("Asked")
Change = TypeVar("Change", GrantAcl, RevokeAcl)

_FIRST_DENIED: tuple[Permission, ...] = ("DENY", "ALLOW")


class Grants:
    """Changes the ACLs of one cluster.

    Args:
        cluster: which one.
        topology: name of the topology whose records are kept.

    Raises:
        EnvironmentFault: AB304 a secret cannot be resolved, AB306 `security` cannot be used on this machine.
    """

    def __init__(self, cluster: Cluster, topology: str) -> None:
        self._cluster = cluster
        self._topology = topology
        self._client = clients.make(AdminClient, cluster)
        self._patience = cluster.clients.admin.patience(ANSWER_SECONDS)
        self._ownership = Ownership(cluster, topology)

    def change(self, steps: Collection[AclChange]) -> Outcome:
        """Grant and revoke, and return the result of every step.

        DENY is granted before ALLOW, and revoked after it, so no principal has more rights in between. Where a step
        fails, the steps that depend on it are not carried out.
        """
        outcome = Outcome()
        for permission in _FIRST_DENIED:
            self._grant(_of(steps, GrantAcl, permission, outcome), outcome)
        for permission in reversed(_FIRST_DENIED):
            for revocations in portions(_of(steps, RevokeAcl, permission, outcome), AT_ONCE):
                self._revoke(revocations, outcome)
        return outcome

    def intend(self, steps: Sequence[GrantAcl]) -> Problem | None:
        """Record that ACLs which are about to be granted are ours; return why that failed."""
        try:
            self._ownership.write_bindings([self._record(step) for step in steps])
        except AnabranchError as error:
            return error.problems[0]
        return None

    def confirm(self, steps: Sequence[GrantAcl]) -> Outcome:
        """Wait until brokers apply ACLs that were granted, and return the result of each."""
        outcome = Outcome()
        _tell(steps, self._await([step.binding for step in steps]), outcome)
        return outcome

    def _grant(self, steps: Sequence[GrantAcl], outcome: Outcome) -> None:
        problems: Problems = {}
        for portion in portions(steps, AT_ONCE):
            if problem := self.intend(portion):
                problems |= {step.binding: problem for step in portion}
                continue
            asked = {bindings.to_kafka(step.binding): step.binding for step in portion}
            problems |= self._problems(asked, self._client.create_acls(list(asked), request_timeout=self._patience))
        problems |= self._await([step.binding for step in steps if step.binding not in problems])
        _tell(steps, problems, outcome)

    def _revoke(self, steps: Sequence[RevokeAcl], outcome: Outcome) -> None:
        asked = {bindings.exactly(step.binding): step.binding for step in steps if not step.is_kept}
        problems: Problems = {}
        if asked:
            problems = self._problems(asked, self._client.delete_acls(list(asked), request_timeout=self._patience))
        gone = [self._record(step) for step in steps if step.binding not in problems]
        try:
            self._ownership.forget_bindings(gone)
        except AnabranchError as error:
            problems |= {record.binding: error.problems[0] for record in gone}
        _tell(steps, problems, outcome)

    def _record(self, step: AclChange) -> OwnedBinding:
        return OwnedBinding(step.binding, self._topology, step.flow, step.role)

    def _await(self, granted: Collection[Binding]) -> Problems:
        """Wait until brokers go by what was granted: the controller confirms a moment before they do."""
        progress = Progress(VISIBLE_SECONDS)
        missing = set(granted)
        while missing:
            try:
                seen = self._client.describe_acls(bindings.EVERY, request_timeout=self._patience).result()
            except KafkaException as error:
                return {one: self._problem(error.args[0], one) for one in missing}
            missing -= {bindings.from_kafka(one) for one in seen}
            if not progress.is_made(len(missing)):
                message = f"was granted, and is not in force; for {VISIBLE_SECONDS:g} s none has come into force"
                problem = Problem(
                    "AB314", self._cluster.where, message, "check the cluster's brokers, then apply again"
                )
                return {one: problem for one in missing}
            if missing:
                time.sleep(_PAUSE_SECONDS)
        return {}

    def _problems(self, asked: Mapping[Asked, Binding], futures: Mapping[Asked, Future[Any]]) -> Problems:
        """Return what went wrong, by ACL."""
        problems: Problems = {}
        for one, future in futures.items():
            try:
                # No limit here: the request has one of its own.
                future.result()
            except KafkaException as error:
                problems[asked[one]] = self._problem(error.args[0], asked[one])
        return problems

    def _problem(self, error: KafkaError, binding: Binding) -> Problem:
        return failed(self._cluster, error, "ALTER", "the cluster", f"ACL {binding}")


def _of(steps: Collection[AclChange], kind: type[Change], permission: Permission, outcome: Outcome) -> list[Change]:
    """Return the steps of a kind and a permission; those that rest on what failed by now have failed as well.

    What is allowed must not be granted where what is denied is not, nor what is denied be revoked where what is allowed
    still stands.
    """
    failed = {one.step.binding.pattern: one.problem for one in outcome.failed if isinstance(one.step, kind)}
    found = [step for step in steps if isinstance(step, kind) and step.binding.permission == permission]
    for step in found:
        if problem := failed.get(step.binding.pattern):
            outcome.failed.append(Failure(step, problem))
    return [step for step in found if step.binding.pattern not in failed]


def _tell(steps: Sequence[AclChange], problems: Problems, outcome: Outcome) -> None:
    for step in steps:
        if problem := problems.get(step.binding):
            outcome.failed.append(Failure(step, problem))
        else:
            outcome.done.append(step)
