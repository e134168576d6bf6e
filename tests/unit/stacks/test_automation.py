"""Data centre after data centre with Pulumi, by the word of each: what is told when one of them raises an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.model.base.errors import EnvironmentFault, Problem, Refused
from reconciler.model.planning.outcome import Failure, Outcome
from reconciler.model.planning.steps import ClusterPlan, CreateInternalTopic, CreateTopic, Plan, Step
from stacks import automation
from stacks.automation import PulumiProvisioner
from tests.unit.plan.facts import cluster, flow, plan_of, topic, topology

A, B, C = "us-east", "eu-west", "ap-south"
DECLARED = topology(flow(A, B), flow(A, C))
PLAN = plan_of(DECLARED, cluster(A, topic("orders")), cluster(B), cluster(C))
BROKEN = EnvironmentFault(
    [Problem("AB371", "Pulumi stack", "no", ""), Problem("AB371", "Pulumi stack", "nor this", "")]
)
REFUSED = Problem("AB314", B, "the broker says no", "")


class _Work:
    """The steps of a cluster, which are not carried out."""

    def __init__(self, _declared: Any, _plan: Any, one: ClusterPlan, *_: Any) -> None:
        self.alias, self.steps, self.outcome = one.alias, one.steps, Outcome()

    @property
    def open(self) -> list[Step]:
        return [step for step in self.steps if step not in self.outcome.done]

    def fail(self, steps: Sequence[Step], problem: Problem) -> None:
        self.outcome.failed += [Failure(step, problem) for step in steps]


@pytest.fixture
def provisioner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PulumiProvisioner:
    monkeypatch.setattr(automation, "Command", lambda kept: None)
    monkeypatch.setattr(automation, "Work", _Work)
    monkeypatch.setattr(automation, "check_brokers", lambda cluster: None)
    return PulumiProvisioner(DECLARED, (), tmp_path / "pulumi")


def becomes(monkeypatch: pytest.MonkeyPatch, what: dict[str, Callable[[_Work], None]]) -> None:
    """Say what becomes of the steps of each cluster."""

    class Centre:
        lost = None

        def __init__(self, _setting: Any, _name: str, works: Sequence[_Work], _progress: Any) -> None:
            self.works = works

        def run(self) -> None:
            for work in self.works:
                what[work.alias](work)

    monkeypatch.setattr(automation, "DataCenterWork", Centre)


def done(work: _Work) -> None:
    work.outcome.done += work.steps


def failed(work: _Work) -> None:
    work.fail(work.steps, REFUSED)


def begun(work: _Work) -> None:
    work.outcome.done += [step for step in work.steps if isinstance(step, CreateInternalTopic)]


def broken(work: _Work) -> None:
    raise BROKEN


@pytest.mark.parametrize("first", [done, failed])
def test_an_error_in_a_later_data_centre_hides_nothing(
    provisioner: PulumiProvisioner, monkeypatch: pytest.MonkeyPatch, first: Callable[[_Work], None]
) -> None:
    becomes(monkeypatch, {B: first, C: broken})
    outcome = provisioner.apply(PLAN)
    mine = [step for step in PLAN.steps if step.cluster == B]
    theirs = [step for step in PLAN.steps if step.cluster == C]
    assert outcome.done == (mine if first is done else [])
    before = [Failure(step, REFUSED) for step in mine] if first is failed else []
    assert outcome.failed == [*before, *(Failure(step, BROKEN.problems[0]) for step in theirs)]
    assert (outcome.not_in_force, outcome.in_force) == ([BROKEN.problems[1]], [])


def test_topics_of_our_own_are_nothing_to_tell(provisioner: PulumiProvisioner, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tuple(replace(one, steps=(CreateInternalTopic(one.alias, "own"), *one.steps)) for one in PLAN.clusters)
    becomes(monkeypatch, {B: begun, C: broken})
    with pytest.raises(EnvironmentFault, match="AB371"):
        provisioner.apply(replace(PLAN, clusters=own))


def test_a_login_that_cannot_be_made_later_hides_nothing(
    provisioner: PulumiProvisioner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(declared: Any, plan: Any, one: ClusterPlan, *rest: Any) -> _Work:
        if one.alias == C:
            raise BROKEN
        return _Work(declared, plan, one, *rest)

    monkeypatch.setattr(automation, "Work", work)
    becomes(monkeypatch, {B: done})
    outcome = provisioner.apply(PLAN)
    assert {step.cluster for step in outcome.done} == {B}
    assert [(one.step.cluster, one.problem) for one in outcome.failed] == [(C, BROKEN.problems[0])]


def test_a_plan_is_looked_at_whole_before_the_first_wave(provisioner: PulumiProvisioner) -> None:
    declared = replace(
        DECLARED, clusters={alias: replace(one, datacenter="dc") for alias, one in DECLARED.clusters.items()}
    )
    (first, second) = (replace(one, datacenter="dc") for one in PLAN.clusters)
    assert any(isinstance(step, CreateTopic) for step in first.steps)
    provisioner._topology = declared
    with pytest.raises(Refused, match=r"AB440"):
        provisioner.prepare(Plan(PLAN.topology, PLAN.digest, (first,)))
    assert not provisioner._project.exists()
    provisioner.prepare(replace(PLAN, clusters=(first, second)))
    assert provisioner._project.exists()
