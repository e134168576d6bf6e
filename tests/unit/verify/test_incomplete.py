"""A copy that lacks what was not copied is not equal: answer and exit code say so, with what is missing and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
import typer

from reconciler.cli.verify import _end
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.names.selection import Selection
from reconciler.model.offsets.runs import CopyRecord
from reconciler.model.offsets.verification import Compared, Counts, Difference, Findings, Verification
from reconciler.model.tasks.spec import FlowSpec
from reconciler.model.tasks.status import PartitionState, PartitionStatus, Reason, TaskStatus
from reconciler.report.verify import summary, verification_json, verification_markdown
from reconciler.verify import incomplete
from reconciler.verify.incomplete import lacking, reasons
from reconciler.verify.slices import SliceBounds, SliceProgress

FLOW = Flow("over", "east", "west", Selection((".*",)))
TOPOLOGY = Topology("payments", {alias: Cluster(alias, ("localhost:1",)) for alias in ("east", "west")}, (FLOW,))
SPEC = FlowSpec.compile(TOPOLOGY, FLOW, "verify")
BOUNDS = SliceBounds("x", 0, "east.x", "identical", None, None, 0, 60, 0, 0, CopyRecord(None, None))


def found(
    behind: int = 0, held: int = 0, why: Mapping[tuple[str, int], str] | None = None, *, over: bool = False
) -> list[Problem]:
    progress = SliceProgress(0, 0, True)
    progress.findings.counts.behind = behind
    bounds = replace(BOUNDS, held=held, held_by="an open transaction of producer 7, epoch 0" if held else "")
    return list(lacking(SPEC, (bounds, progress), why or {}, failed_over=over))


def test_what_is_not_copied_is_told_with_why() -> None:
    (parked,) = found(60, why={("x", 0): "parked AB217"})
    assert (parked.code, parked.message) == ("AB651", "60 offsets of x/0 are not copied: parked AB217")
    assert "`anabranch status` shows what to do" in parked.remedy
    assert found(1)[0].message == "1 offset of x/0 is not copied: not copied yet"
    assert "--copied-only" in found(1)[0].remedy
    assert found(60_000, over=True)[0].message == "60,000 offsets of x/0 are not copied: the flow is failed over"
    assert found() == []


def test_what_stands_behind_an_open_transaction_is_told() -> None:
    (held,) = found(held=10)
    assert held.code == "AB652"
    assert held.message == (
        "10 offsets of x/0 from 60 on stand behind an open transaction of producer 7, epoch 0: not copied, nor compared"
    )
    assert [one.code for one in found(5, 10)] == ["AB651", "AB652"]


class Told:
    """What the status topic says."""

    words: list[TaskStatus]
    refused = False

    def __init__(self, *_arguments: object) -> None: ...

    def current(self) -> list[TaskStatus]:
        if self.refused:
            raise EnvironmentFault(Problem("AB311", "cluster west", "may not be read", ""))
        return self.words

    def close(self) -> None: ...


def status(flow: str, *states: PartitionState) -> TaskStatus:
    partitions = tuple(
        PartitionStatus("x", number, "east.x", state, 1, 3, Reason("AB217", "refused") if state == "parked" else None)
        for number, state in enumerate(states)
    )
    whole = TaskStatus.of_process(replace(FLOW, name=flow), "run", "")
    return replace(whole, task=0, tasks=1, partitions=partitions)


def test_why_is_what_the_tasks_of_the_flow_said_last(monkeypatch: pytest.MonkeyPatch) -> None:
    states = PartitionState.PARKED, PartitionState.PAUSED, PartitionState.RUNNING, PartitionState.WAITING
    words = [status("over", *states), status("other", *(PartitionState.PARKED,) * 4)]
    monkeypatch.setattr(incomplete, "StatusReader", type("Words", (Told,), {"words": words}))
    assert reasons(SPEC) == {("x", 0): "parked AB217", ("x", 1): "paused"}
    monkeypatch.setattr(incomplete, "StatusReader", type("Closed", (Told,), {"refused": True}))
    assert reasons(SPEC) == {}


def verification(*lacks: Problem, copied_only: bool = False, differs: bool = False) -> Verification:
    findings = Findings(Counts(records=40))
    if differs:
        findings.add(Difference("missing", 3, 3, "the target does not have it"))
    names = ("over", "east", "x", "west", "east.x", 0, "identical")
    one = Compared(*names, (0, 40), (0, 40), findings, lacks=lacks)
    return Verification("payments", (one,), copied_only=copied_only)


def ends_with(found: Verification) -> int:
    try:
        _end(found)
    except typer.Exit as ended:
        return ended.exit_code
    return 0


def test_incomplete_is_not_equal() -> None:
    (lack,) = found(60, why={("x", 0): "parked AB217"})
    one = verification(lack)
    assert (one.partitions[0].state, one.is_equal, ends_with(one)) == ("incomplete", None, 3)
    assert summary(one) == (
        "no difference in what is copied: 40 records are the same, 0 % of them as bytes; "
        "incomplete: 1 partition of originals holds more than is copied"
    )
    told = verification_json(one)
    assert (told["equal"], told["partitions"][0]["state"]) == (None, "incomplete")
    assert [(problem["code"], problem["message"]) for problem in told["incomplete"]] == [("AB651", lack.message)]
    assert "- 60 offsets of x/0 are not copied: parked AB217 [AB651]" in verification_markdown(one)
    # What differs comes first, and all that is copied is equal where nothing is missing.
    assert ends_with(verification(lack, differs=True)) == 1
    assert (verification().is_equal, ends_with(verification())) == (True, 0)


def test_what_is_copied_alone_may_be_asked_for() -> None:
    (lack,) = found(60)
    one = verification(lack, copied_only=True)
    assert (one.is_equal, ends_with(one)) == (True, 0)
    # It is told all the same.
    assert "no difference in what is copied" in summary(one)
    assert "incomplete" not in summary(one)
    assert verification_json(one)["incomplete"] != []
    assert ends_with(verification(lack, copied_only=True, differs=True)) == 1
