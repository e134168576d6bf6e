"""`anabranch replicate`: run the flows into some clusters on this machine until stopped, or until caught up.

A run ends when another declaration is put in force; the next one begins as soon as the gate lets it pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from reconciler.cli.common import TERMINAL, Files, print_problems, say
from reconciler.cli.log import FlowLog, LogFormat, opened
from reconciler.cli.patience import Wait, seconds_of
from reconciler.cli.shared_options import Clusters, Overrides
from reconciler.model.base.errors import Problem
from reconciler.model.base.files import make_private, state_home
from reconciler.model.base.installed import need
from reconciler.model.tasks.spec import DEFAULT_ROUND
from reconciler.model.tasks.status import TaskStatus
from reconciler.operate.flows.running import check_flows, parked_problem, spark_of, specs_of
from reconciler.operate.patience import Patience

if TYPE_CHECKING:
    from reconciler.operate.flows.gate import FlowGate, Passed
    from reconciler.replicator.driver.driver import RunOutcome
    from reconciler.replicator.spark.ledger_files import LedgerFiles

_StateDir = Annotated[
    Path | None, typer.Option(help="Where a run keeps Spark's log and files; positions are never kept there.")
]
_Ledger = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        file_okay=False,
        help="Keep the ledgers as files, at DIR/FLOW/RUN: a row for each run of records.",
    ),
]
_LedgerFormat = Annotated[
    Literal["json", "parquet"] | None,
    typer.Option("--ledger-format", help="How these files are written; json by default."),
]


def replicate(
    files: Files,
    *,
    clusters: Clusters = None,
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="End when the sources' ends of now are reached: only then with 0.")
    ] = False,
    state_dir: _StateDir = None,
    round_seconds: Annotated[
        float, typer.Option("--round", min=1.0, help="Seconds until a task reports its ledger and begins anew.")
    ] = DEFAULT_ROUND,
    ledger: _Ledger = None,
    ledger_format: _LedgerFormat = None,
    reconcile: Annotated[
        bool,
        typer.Option(
            "--reconcile/--no-reconcile", help="Make remote topics for new topics, and let them grow, as apply would."
        ),
    ] = True,
    wait: Wait = None,
    overrides: Overrides = True,
    log_format: LogFormat = None,
) -> None:
    """Copy records: all enabled flows into the named clusters, by default into all."""
    from reconciler.checkpoints.service.service import looking_after_groups
    from reconciler.operate.flows.following import growing
    from reconciler.operate.flows.gate import FlowGate
    from reconciler.operate.moving import move_journals
    from reconciler.replicator.driver.driver import Driver, RunEnding, RunOptions, RunOutcome, RunWatcher, new_run

    state, ledgers = made_state_dir(state_dir), _ledger_files(ledger, ledger_format)
    patience, log = Patience(seconds_of(wait), TERMINAL), opened(log_format)
    gate = FlowGate(files, clusters, waits=not until_caught_up, reporter=TERMINAL, overrides=overrides)

    def begin() -> None:
        check_flows(gate)
        move_journals(gate.topology, gate.targets, reporter=TERMINAL)
        spark_of(gate.topology, gate.targets)

    def drive(passed: Passed) -> RunOutcome:
        (topology, targets, flows), run = passed, new_run()
        if not gate.announce(flows):
            return RunOutcome(RunEnding.SUPERSEDED)
        with FlowLog(log, flows) as progress:
            watcher = RunWatcher(warn=warn, seen=_seen(progress, gate.heard), phase=say, note=say)
            grow, spark = growing(topology, make=reconcile), spark_of(topology, targets)
            options = RunOptions(until_caught_up, ledgers, grow, spark)
            with looking_after_groups(topology, flows, warn):
                specs = specs_of(topology, flows, run, round_seconds)
                outcome = Driver(specs, state / topology.name / run, watcher, options).run(gate.is_superseded)
            progress.show(anew=True)
        return outcome

    _tell_end(_drive_on(gate, drive, begin, patience), until_caught_up)


def _seen(progress: FlowLog, heard: Callable[[Sequence[TaskStatus]], None]) -> Callable[[Sequence[TaskStatus]], None]:
    """Return what takes the newest words of the tasks: `heard` each time, and a log now and then."""
    due = 0.0

    def seen(statuses: Sequence[TaskStatus]) -> None:
        nonlocal due
        heard(statuses)
        now = time.monotonic()
        if statuses and now >= due:
            due = now + progress.every
            progress.show(statuses)
        else:
            progress.newest = statuses

    return seen


def _tell_end(outcome: RunOutcome, until_caught_up: bool) -> None:
    """Report how a run has ended; with --until-caught-up only that end is exit code 0.

    Raises:
        typer.Exit: 1, what is left is parked or paused; 130 or 143, a signal has stopped what was to catch up.
    """
    from reconciler.replicator.driver.driver import RunEnding

    if outcome.parked:
        print_problems(dict.fromkeys(parked_problem(flow, partition) for flow, partition in outcome.parked))
        raise typer.Exit(1)
    print_problems(outcome.held, severity="warning")
    say(outcome.ending.value)
    if until_caught_up and outcome.ending is RunEnding.STOPPED:
        raise typer.Exit(128 + outcome.signal)


def _drive_on(
    gate: FlowGate, drive: Callable[[Passed], RunOutcome], begin: Callable[[], None], patience: Patience
) -> RunOutcome:
    """Drive what the gate lets pass, anew whenever another declaration is in force; return how the last run ended.

    Args:
        gate: what may run.
        drive: runs it.
        begin: what comes before.
        patience: with clusters that do not answer.
    """
    from reconciler.replicator.driver.driver import RunEnding, RunOutcome
    from reconciler.replicator.driver.signals import StopSignals

    with StopSignals() as signals:
        try:
            patience.until_answered(begin)
            while (outcome := patience.until_answered(lambda: drive(gate.passed()))).ending is RunEnding.SUPERSEDED:
                pass
        except BaseException as error:
            # Only for signals before a run, which handles them itself.
            if not signals.ended(error):
                raise
            outcome = RunOutcome(RunEnding.STOPPED, signal=signals.number)
        finally:
            signals.may_raise = False
            gate.close()
    return outcome


def made_state_dir(declared: Path | None) -> Path:
    """Make and return the folder where runs keep their files, and remove what former runs left in it.

    Raises:
        BadParameter: it cannot be made.
    """
    from reconciler.replicator.spark import run_folders

    if declared is None:
        folder = state_home() / "anabranch"
        try:
            make_private(folder)
        except OSError as error:
            raise not_made(folder, "XDG_STATE_HOME", error) from None
    else:
        folder = _made(declared, "--state-dir")
    run_folders.sweep(folder)
    return folder


def _made(folder: Path, hint: str) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_made(folder, hint, error) from None
    return folder


def not_made(folder: Path, hint: str, error: OSError) -> typer.BadParameter:
    """Return the error that a folder cannot be made that an option or a variable names."""
    return typer.BadParameter(f"cannot be made: {error.strerror}: {folder}", param_hint=hint)


def _ledger_files(folder: Path | None, output: Literal["json", "parquet"] | None) -> LedgerFiles | None:
    from reconciler.replicator.spark.ledger_files import LedgerFiles

    if folder is None and output is not None:
        message = "it goes with --ledger, which names the folder of the files"
        raise typer.BadParameter(message, param_hint="--ledger-format")
    if output == "parquet":
        need("stream")
    return None if folder is None else LedgerFiles(_made(folder, "--ledger"), output or "json")


def warn(text: str) -> None:
    """Print a warning of a run to stderr."""
    print_problems((Problem("AB330", "", text, ""),), severity="warning")
