"""How often a failback copies back what comes meanwhile, and what it does when a failover has only begun."""

from __future__ import annotations

import signal
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import typer

from reconciler.cli import failback
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.steps import Plan
from reconciler.model.recorded.failover import FailbackPlan, FailedOver
from reconciler.operate.locking import Locks
from reconciler.replicator.driver import driver
from reconciler.replicator.driver.driver import RunEnding, RunOutcome
from reconciler.report.failover import failback_lines

TOPOLOGY = Topology("shop", {}, ())
ACLS = Plan("shop", "digest", ())
LOG = ("east.orders", 0)


class Writes:
    """A flow to whose copy somebody writes while it is copied back, so many times.

    Args:
        times: how often before it is copied back.
        late: how often right before it is handed over.
    """

    def __init__(self, times: int, late: int = 0) -> None:
        self._times = times
        self._late = late
        self.ended = 0

    def look(self) -> FailbackPlan:
        return cast("FailbackPlan", None)

    def check_divergence(self, _plan: FailbackPlan) -> None: ...

    def begin(self, _plan: FailbackPlan) -> None: ...

    def not_back(self, _plan: FailbackPlan) -> list[tuple[str, int]]:
        return [LOG] if self._times else []

    def copy_back(self, *_arguments: object) -> None:
        self._times -= 1

    def hand_back(self, _plan: FailbackPlan) -> list[tuple[str, int]]:
        if not self._late:
            return []
        self._late -= 1
        return [LOG]

    def end(self) -> None:
        self.ended += 1


def locks() -> Locks:
    unheld: Any = SimpleNamespace(check=lambda _alias: None, interrupts=SimpleNamespace(change=lambda: None))
    return cast("Locks", unheld)


def plan(phase: Any = "returning") -> FailbackPlan:
    return FailbackPlan("over", "east", "west", FailedOver("over", phase, 1.0, "ops"), (), ())


@pytest.mark.parametrize(
    ("times", "late", "is_back"),
    [(0, 0, True), (6, 0, True), (5, 1, True), (7, 0, False), (6, 1, False), (0, 7, False)],
)
def test_what_comes_meanwhile_is_copied_back_in_six_turns(
    monkeypatch: pytest.MonkeyPatch, times: int, late: int, *, is_back: bool
) -> None:
    writes, changed = Writes(times, late), list[Plan]()
    monkeypatch.setattr(failback, "_copy_back", writes.copy_back)

    def carry_out(_topology: Topology, acls: Plan, _check: object) -> list[Problem]:
        changed.append(acls)
        return []

    monkeypatch.setattr(failback, "carry_acls_out", carry_out)
    with nullcontext() if is_back else pytest.raises(EnvironmentFault, match=r"after 6 turns.*\[AB709\]"):
        assert failback._brought_back(TOPOLOGY, cast("Any", writes), (plan(), ACLS), locks())[1] == []
    # ACLs change once, when all that had come by then is back; that is no turn.
    assert changed == ([ACLS] if times < 7 else [])


@pytest.mark.parametrize("problems", [[], [Problem("AB313", "topic east.orders", "refused", "grant it")]])
def test_a_failover_that_has_only_begun_is_called_off(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], problems: list[Problem]
) -> None:
    writes, printed = Writes(0), list[dict[str, Any]]()
    monkeypatch.setattr(failback, "carry_acls_out", lambda *_: problems)
    monkeypatch.setattr(failback, "print_json", printed.append)
    with pytest.raises(typer.Exit) if problems else nullcontext():
        failback._call_off(TOPOLOGY, cast("Any", writes), (plan("ending"), ACLS), locks(), "json")
    (said,) = printed
    assert (writes.ended, said["committed"], said["dryRun"], said["plan"]["phase"]) == (1, 0, False, "ending")
    assert [one["code"] for one in said["problems"]] == [one.code for one in problems]
    assert "called off" in capsys.readouterr().err


def test_what_is_called_off_is_told_without_groups() -> None:
    lines = [line.plain for line in failback_lines(plan("ending"))]
    assert lines[-1] == "  the failover is cancelled: consumers and producers stay at east, and the flow goes on"
    assert not any("group" in line for line in lines)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (RunOutcome(RunEnding.STOPPED, signal=signal.SIGINT), 130),
        (RunOutcome(RunEnding.STOPPED, signal=signal.SIGTERM), 143),
        (RunOutcome(RunEnding.SUPERSEDED), 1),
    ],
)
def test_what_ends_the_copying_back_is_in_the_exit_code(
    outcome: RunOutcome, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(driver, "Driver", lambda *_: SimpleNamespace(run=lambda: outcome))
    coming = SimpleNamespace(specs=lambda *_: ["one"])
    topology = Topology("shop", {"east": Cluster("east", ("b1:9092",))}, ())
    with pytest.raises(typer.Exit) as ended:
        failback._copy_back(topology, cast("Any", coming), cast("Any", SimpleNamespace(source="east")))
    assert ended.value.exit_code == code
