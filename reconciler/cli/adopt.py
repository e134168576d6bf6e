"""`anabranch adopt`: take over topics that stand where copies would."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from reconciler.cli.carrying import carry_out, go_on, print_outcome, refuse_when_moved_on, state_apart
from reconciler.cli.common import FORMAT, Files, as_written, load_topology, stderr_console
from reconciler.cli.locking import Locks
from reconciler.cli.planning import Clusters, PlanFormat, chosen_targets, show_plan, tell_away, tell_next
from reconciler.cli.targeting import Topics, check_names
from reconciler.model.steps import Plan
from reconciler.model.topology import Topology


def adopt(
    files: Files,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: Annotated[
        PlanFormat, typer.Option(*FORMAT, callback=as_written, help="How plan and outcome are written.")
    ] = "text",
    clusters: Clusters = None,
    target: Topics = None,
    wait: Annotated[
        float, typer.Option("--wait", metavar="SECONDS", min=0.0, help="How long to wait for an apply to end.")
    ] = 60.0,
) -> None:
    """Take over topics that stand where copies would, as MirrorMaker 2's: show the plan, ask, record them as ours."""
    topology = load_topology(files)
    targets, only = chosen_targets(topology, clusters), tuple(target or ())
    if not yes and not sys.stdin.isatty():
        message = "it is needed where there is no terminal to ask on"
        raise typer.BadParameter(message, param_hint="--yes")
    with Locks(topology, targets, wait) as locks:
        plan = _planned(topology, targets, only, tells=True)
        show_plan(plan, output, asks=not yes)
        if not plan.changes_nothing and not yes:
            go_on()
            refuse_when_moved_on(plan, _planned(topology, targets, only))
        if locks.take_rest(plan):
            refuse_when_moved_on(state_apart(plan), state_apart(_planned(topology, targets, only)))
        outcome = carry_out(topology, plan, locks, "adopting")
    print_outcome(plan, outcome, output)
    if output == "text" and outcome.is_complete and outcome.done:
        tell_next("plan", files)
    if not outcome.is_complete:
        raise typer.Exit(locks.interrupts.exit_code)


def _planned(topology: Topology, targets: Sequence[str], only: Sequence[str], tells: bool = False) -> Plan:
    from reconciler.observe.topology import observe
    from reconciler.plan.adopt import adopt_plan
    from reconciler.plan.part import known_names

    with stderr_console().status("looking at the clusters"):
        observed = observe(topology, targets, resting_may_be_away=True)
    if tells:
        tell_away(observed)
    check_names(only, known_names(topology, observed, targets))
    return adopt_plan(topology, observed, targets, only)
