"""Plan, apply, status and drift from Python, on real brokers and without a terminal."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import Problem
from reconciler.model.planning.steps import CreateTopic, Plan
from reconciler.operate import (
    ApplyOptions,
    Approval,
    DriftOptions,
    InvalidArgument,
    PlanOptions,
    Reporter,
    apply,
    drift,
    load,
    plan,
    status,
)
from reconciler.operate.reporter import Emphasis
from tests.support.clusters.kafka import create

REFERENCE = (Path(__file__).parents[3] / "docs" / "reference" / "python.md").read_text(encoding="utf-8")


class Kept(Reporter):
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.problems: list[Problem] = []

    def note(self, text: str, emphasis: Emphasis = "detail") -> None:
        self.notes.append(text)

    def warn(self, problems: Iterable[Problem]) -> None:
        self.problems += problems


class Declined(Exception):
    """The plan is not agreed on."""


class Declining(Approval):
    """Keeps the plan that it is shown, and declines it."""

    shown: Plan

    def show(self, plan: Plan) -> None:
        self.shown = plan

    def agree(self, plan: Plan) -> bool:
        assert plan == self.shown
        raise Declined


def test_plan_apply_status_and_drift(
    file: Path, source_cluster: EmbeddedCluster, topic_name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    create(source_cluster, topic_name)
    topology, kept = load([file]), Kept()
    planned = plan(topology, reporter=kept)
    planned.check()
    copies = [step.name for step in planned.plan.steps if isinstance(step, CreateTopic)]
    assert copies == [f"us-east.{topic_name}"]
    declining = Declining()
    with pytest.raises(Declined):
        apply(topology, approval=declining, reporter=kept)
    assert declining.shown == planned.plan
    applied = apply(topology, reporter=kept)
    assert applied.plan == planned.plan
    assert applied.outcome.is_complete
    assert applied.outcome.in_force == ["eu-west"]
    assert plan(topology).plan.changes_nothing
    view = status(topology)
    assert (view.failures, view.statuses, list(view.in_force)) == ({}, (), ["eu-west"])
    found = drift(topology, DriftOptions(target=copies))
    assert (found.looked_at, found.drifted, found.unseen) == (("eu-west",), (), ())
    assert kept.problems == []
    printed = capfd.readouterr()
    assert (printed.out, printed.err) == ("", "")


def test_arguments_are_named(file: Path) -> None:
    topology = load([file])
    for fails in (
        lambda: plan(topology, PlanOptions(clusters=["eu"])),
        lambda: apply(topology, ApplyOptions(clusters=["eu"])),
        lambda: drift(topology, DriftOptions(clusters=["eu"])),
        lambda: status(topology, ["eu"]),
    ):
        with pytest.raises(InvalidArgument, match="no cluster eu is declared; there are us-east, eu-west") as error:
            fails()
        assert error.value.argument == "clusters"


def test_the_program_of_the_reference_runs(
    file: Path, source_cluster: EmbeddedCluster, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(source_cluster, topic_name)
    (program,) = re.findall(r"```python\n(.*?)```", REFERENCE, re.DOTALL)
    monkeypatch.chdir(file.parent)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "eu-west CreateTopic" in done.stdout
    assert "complete: True" in done.stdout
    assert "us-east-eu-west not running None" in done.stdout


def test_importing_it_is_light() -> None:
    heavy = ("rich", "typer", "pyspark", "kafka", "confluent_kafka", "ruamel", "jsonschema", "deepdiff", "pulumi")
    program = f"import sys, reconciler.operate; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
