"""Commands that run on wait for clusters with `--wait`, and say what is away once."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

import pytest
import typer

from reconciler.cli import common
from reconciler.cli.optional_values import with_values
from reconciler.cli.patience import seconds_of
from reconciler.model.base.errors import EnvironmentFault, Problem, Unreachable
from reconciler.operate.patience import Patience
from reconciler.operate.reporter import Emphasis, Reporter


def away(*aliases: str) -> Unreachable:
    return Unreachable([Problem("AB310", f"cluster {alias}", "does not answer", "start it") for alias in aliases])


class Clusters:
    """Answers as it is told, one after the other, on a clock of its own."""

    def __init__(self, *answers: Exception | str) -> None:
        self.answers = list(answers)
        self.now = 0.0
        self.pauses: list[float] = []

    def ask(self) -> str:
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


class Kept(Reporter):
    """Keeps what is reported."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, text: str, emphasis: Emphasis = "detail") -> None:
        self.said.append(text)

    def warn(self, problems: Iterable[Problem]) -> None:
        self.said += map(str, problems)


@pytest.fixture(name="kept")
def fixture_kept() -> Kept:
    return Kept()


def clock(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: clusters.now)
    monkeypatch.setattr(time, "sleep", clusters.sleep)


def test_each_change_is_said_once_and_pauses_grow(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = Clusters(away("east", "west"), *[away("west")] * 7, "there")
    clock(clusters, monkeypatch)
    assert Patience(math.inf, kept).until_answered(clusters.ask) == "there"
    assert clusters.pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    waited = "does not answer; waiting for it — start it [AB310]"
    assert kept.said == [
        f"cluster east: {waited}",
        f"cluster west: {waited}",
        f"cluster west: {waited}",
        "all clusters answer; going on",
    ]


def test_without_it_nothing_is_waited_for_or_said(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = Clusters(away("east"))
    clock(clusters, monkeypatch)
    with pytest.raises(Unreachable):
        Patience(0, kept).until_answered(clusters.ask)
    assert (clusters.pauses, kept.said) == ([], [])


@pytest.mark.parametrize(("wait", "seconds"), [("5s", 5), ("0.1m", 6), ("1min", 60), ("2", 2)])
def test_the_time_is_up_at_the_time(wait: str, seconds: float, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = Clusters(*[away("east")] * 99)
    clock(clusters, monkeypatch)
    with pytest.raises(Unreachable):
        Patience(seconds_of(wait), kept).until_answered(clusters.ask)
    assert clusters.now == seconds
    assert len(kept.said) == 1


def test_what_waiting_does_not_mend_is_not_waited_for(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = Clusters(EnvironmentFault(Problem("AB312", "cluster east", "does not let us in", "correct it")))
    clock(clusters, monkeypatch)
    with pytest.raises(EnvironmentFault):
        Patience(math.inf, kept).until_answered(clusters.ask)
    assert (clusters.pauses, kept.said) == ([], [])


@pytest.mark.parametrize("wait", ["soon", "-1s", "5 d", "", "1e9"])
def test_what_is_no_duration_is_refused(wait: str) -> None:
    with pytest.raises(typer.BadParameter, match="expected a duration such as 30s"):
        seconds_of(wait)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["replicate", "a.yaml", "--wait"], ["replicate", "a.yaml", "--wait=forever"]),
        (["replicate", "--wait", "a.yaml"], ["replicate", "--wait=forever", "a.yaml"]),
        (["reconcile", "--wait", "30s", "a.yaml"], ["reconcile", "--wait", "30s", "a.yaml"]),
        (["reconcile", "--wait=5min", "a.yaml"], ["reconcile", "--wait=5min", "a.yaml"]),
        (["reconcile", "--wait", "--once"], ["reconcile", "--wait=forever", "--once"]),
        (["apply", "--wait", "5", "a.yaml"], ["apply", "--wait", "5", "a.yaml"]),
        (["status", "-w", "a.yaml"], ["status", "--watch=2.0", "a.yaml"]),
        (["status", "-w", "5", "a.yaml"], ["status", "-w", "5", "a.yaml"]),
        (["replicate", "--", "--wait"], ["replicate", "--", "--wait"]),
    ],
)
def test_an_option_without_its_value_gets_it(given: list[str], told: list[str]) -> None:
    assert with_values(given) == told


def test_without_a_log_what_is_said_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    common.say("all clusters answer")
    assert capsys.readouterr().err == "all clusters answer\n"
