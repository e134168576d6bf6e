"""`anabranch reconcile`: let copies follow their originals, again and again, and copy no records."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Annotated

import typer

from reconciler.cli.common import Files, print_problems, stdout_console
from reconciler.cli.planning import Clusters
from reconciler.model.errors import AnabranchError
from reconciler.model.flow import Flow
from reconciler.model.outcome import Growth

_PAUSE_SECONDS = 0.5


def reconcile(
    files: Files,
    clusters: Clusters = None,
    once: Annotated[
        bool, typer.Option("--once", help="Look once and end: with 1 where anything could not be done.")
    ] = False,
) -> None:
    """Follow originals as replicate does beside copying: new topics, partitions, settings, ACLs. Deletes no topics."""
    from reconciler.cli.following import growing
    from reconciler.cli.gate import Gate

    signal.signal(signal.SIGTERM, _end)
    gate = Gate(files, clusters, waits=not once)
    try:
        while True:
            topology, _, flows = gate.passed()
            followers = [_Follower(flow, growing(topology)) for flow in flows]
            if once:
                if not all([follower.look() for follower in followers]):
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


class _Follower:
    """Looks after the copies of one flow, every `refresh-interval`, and says what is news."""

    def __init__(self, flow: Flow, follow: Callable[[str], Growth]) -> None:
        self._flow = flow
        self._follow = follow
        self._due = 0.0
        self._told: frozenset[str] = frozenset()

    def look_when_due(self) -> None:
        """Look when it is time to."""
        if time.monotonic() >= self._due:
            self.look()
            self._due = time.monotonic() + self._flow.refresh_interval

    def look(self) -> bool:
        """Look once, and tell what was done and what could not be; return whether all of it could."""
        from reconciler.report.outcome_text import task

        try:
            growth = self._follow(self._flow.name)
        except AnabranchError as error:
            growth = Growth(problems=error.problems)
        for step in growth.outcome.done:
            stdout_console().print(f"{step.cluster}: {task(step)}")
        problems = [
            *growth.problems,
            *(one.problem for one in growth.beyond),
            *(failure.problem for failure in growth.outcome.failed),
        ]
        print_problems([problem for problem in problems if str(problem) not in self._told], severity="warning")
        said = {f"{topic}: {why}" for reasons in (growth.left_out, growth.hindered) for topic, why in reasons.items()}
        for one in sorted(said - self._told):
            stdout_console().print(f"flow {self._flow.name}: {one}")
        self._told = frozenset(said | set(map(str, problems)))
        return not problems and not growth.outcome.skipped


def _end(_number: int, _frame: object) -> None:
    # As Ctrl-C does.
    raise KeyboardInterrupt
