"""`anabranch reconcile`: let copies follow their originals, again and again, and copy no records."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from reconciler.cli.common import TERMINAL, Files, print_problems, stderr_console, stdout_console
from reconciler.cli.log import LogFormat, opened
from reconciler.cli.patience import Wait, seconds_of
from reconciler.cli.shared_options import Clusters, Overrides
from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.flow import Flow
from reconciler.model.planning.outcome import Growth
from reconciler.operate.patience import Patience

_PAUSE_SECONDS = 0.5


def reconcile(
    files: Files,
    clusters: Clusters = None,
    once: Annotated[
        bool, typer.Option("--once", help="Look once and end: with 1 where anything could not be done.")
    ] = False,
    wait: Wait = None,
    *,
    overrides: Overrides = True,
    log_format: LogFormat = None,
) -> None:
    """Follow originals as replicate does beside copying: new topics, partitions, settings, ACLs. Deletes no topics."""
    from reconciler.operate.flows.following import growing
    from reconciler.operate.flows.gate import FlowGate

    signal.signal(signal.SIGTERM, _end)
    patience = Patience(seconds_of(wait), TERMINAL)
    # With --once it prints what was done to stdout, as other commands do.
    tell = _print if once else opened(log_format).say
    gate = FlowGate(files, clusters, waits=not once, reporter=TERMINAL, overrides=overrides)
    try:
        while True:
            topology, _, flows = patience.until_answered(gate.passed)
            followers = [_Follower(flow, growing(topology), tell) for flow in flows]
            if once:
                is_done = all([follower.look() for follower in followers])
                stderr_console().print(_summed_up(followers), style="dim")
                if not is_done:
                    raise typer.Exit(1)
                return
            while not gate.is_superseded():
                for follower in followers:
                    follower.look_when_due()
                time.sleep(_PAUSE_SECONDS)
    except KeyboardInterrupt:
        return
    finally:
        gate.close()


def _print(text: str) -> None:
    stdout_console().print(text)


def _summed_up(followers: Sequence[_Follower]) -> str:
    """Return in words what one look has come to."""
    from reconciler.report.text.words import counted

    flows, done, left = (sum(counts) for counts in zip(*[(1, one.done, one.left) for one in followers], strict=True))
    made = f"{counted(done, 'change')} made" if done else "no change was needed"
    undone = f", {counted(left, 'thing')} could not be done" if left else ""
    return f"looked at {counted(flows, 'flow')}: {made}{undone}"


class _Follower:
    """Has the copies of one flow follow, every `refresh-interval`, and reports what is new.

    Attributes:
        done: how many changes it has made.
        left: how many things the last look could not do.
    """

    def __init__(self, flow: Flow, follow: Callable[[str], Growth], tell: Callable[[str], None]) -> None:
        self._flow = flow
        self._follow = follow
        self._tell = tell
        self.done = self.left = 0
        self._due = 0.0
        self._told: frozenset[str] = frozenset()

    def look_when_due(self) -> None:
        """Do it when it is due."""
        if time.monotonic() >= self._due:
            self.look()
            self._due = time.monotonic() + self._flow.refresh_interval

    def look(self) -> bool:
        """Do it once, and report what was done and what could not be; return whether all of it could."""
        from reconciler.report.plan.outcome import task

        try:
            growth = self._follow(self._flow.name)
        except AnabranchError as error:
            growth = Growth(problems=error.problems)
        for step in growth.outcome.done:
            self._tell(f"{step.cluster}: {task(step)}")
        problems = [
            *growth.problems,
            *(one.problem for one in growth.beyond),
            *(failure.problem for failure in growth.outcome.failed),
        ]
        print_problems([problem for problem in problems if str(problem) not in self._told], severity="warning")
        said = {f"{topic}: {why}" for reasons in (growth.left_out, growth.hindered) for topic, why in reasons.items()}
        for one in sorted(said - self._told):
            self._tell(f"flow {self._flow.name}: {one}")
        self.done += len(growth.outcome.done)
        self.left = len(problems) + len(said) + len(growth.outcome.skipped)
        self._told = frozenset(said | set(map(str, problems)))
        return not problems and not growth.outcome.skipped


def _end(_number: int, _frame: object) -> None:
    # As Ctrl-C does.
    raise KeyboardInterrupt
