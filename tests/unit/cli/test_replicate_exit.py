"""With which code `replicate` ends: 0 with `--until-caught-up` only when it has caught up. Runs are made up."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any, cast

import pytest

from reconciler.cli import replicate
from reconciler.cli.main import main
from reconciler.operate.patience import Patience
from reconciler.replicator.driver.driver import RunEnding, RunOutcome

DECLARED = """\
version: 1
name: both
clusters: {east: {bootstrap: ["e:1"]}, west: {bootstrap: ["w:1"]}}
flows: [{name: east-west, from: east, to: west}]
"""


@pytest.mark.parametrize(
    ("options", "outcome", "code"),
    [
        (["--until-caught-up"], RunOutcome(RunEnding.CAUGHT_UP), 0),
        (["--until-caught-up"], RunOutcome(RunEnding.STOPPED, signal=signal.SIGINT), 130),
        (["--until-caught-up"], RunOutcome(RunEnding.STOPPED, signal=signal.SIGTERM), 143),
        ([], RunOutcome(RunEnding.STOPPED, signal=signal.SIGINT), 0),
        ([], RunOutcome(RunEnding.STOPPED, signal=signal.SIGTERM), 0),
    ],
)
def test_a_stop_is_not_taken_for_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], outcome: RunOutcome, code: int
) -> None:
    file = tmp_path / "both.yaml"
    file.write_text(DECLARED)
    monkeypatch.setattr(replicate, "check_flows", lambda _gate: None)
    monkeypatch.setattr(replicate, "_drive_on", lambda *_: outcome)
    assert main(["replicate", str(file), "--state-dir", str(tmp_path), *options]) == code


class Waiting:
    """A gate that lets nothing pass, and somebody ends the wait."""

    def passed(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    def close(self) -> None: ...


def test_a_stop_before_anything_runs_says_by_what() -> None:
    outcome = replicate._drive_on(
        cast("Any", Waiting()), lambda _passed: RunOutcome(RunEnding.CAUGHT_UP), lambda: None, Patience(0)
    )
    assert outcome == RunOutcome(RunEnding.STOPPED, signal=signal.SIGTERM)
