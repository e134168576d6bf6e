"""`anabranch failover`: move consumer groups from a flow's source to its target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reconciler.cli.common import (
    TERMINAL,
    Files,
    ask,
    check_can_ask,
    load_topology,
    print_problems,
    stderr_console,
    stdout_console,
)
from reconciler.cli.completing import flow_names
from reconciler.cli.formats import FORMAT, TextOrData, as_written, print_json
from reconciler.cli.offsets.options import OnlyForward, check_patterns
from reconciler.cli.shared_options import declared_flow
from reconciler.model.base.errors import Problem
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.steps import Plan
from reconciler.model.recorded.failover import Allowance
from reconciler.operate.failover.acls import acl_plan, carry_acls_out
from reconciler.operate.locking import Locks

if TYPE_CHECKING:
    from reconciler.failover.failover import Failover
    from reconciler.model.recorded.failover import Carried, FailoverPlan

FlowName = Annotated[str, typer.Option("--flow", "-f", metavar="NAME", autocompletion=flow_names, help="Which flow.")]
GroupNames = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="NAME",
        help="Only groups by name or regular expression (full match); repeatable. Otherwise those that the flow takes "
        "along, all that read its topics where it names none.",
    ),
]
LeaveBehind = Annotated[
    str | None,
    typer.Option(
        "--leave-behind",
        metavar="N|unknown",
        help="Go on though this many records stay behind, at most; unknown, where they cannot be counted.",
    ),
]
WithoutGroups = Annotated[
    list[str] | None,
    typer.Option(
        "--without-group",
        metavar="NAME",
        help="Go on though this group does not get its place on the other side: by name or regular expression (full "
        "match), or all; repeatable.",
    ),
]
Patience = Annotated[
    float, typer.Option("--patience", metavar="SECONDS", min=1.0, help="How long to wait for the flow.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Output = Annotated[TextOrData, typer.Option(*FORMAT, callback=as_written, help="How plan and outcome are written.")]

LOCK_SECONDS = 60.0
_UNKNOWN = "unknown"


def failover(
    files: Files,
    *,
    flow: FlowName,
    group: GroupNames = None,
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="First wait until everything is copied that the source has.")
    ] = False,
    source_lost: Annotated[
        bool, typer.Option("--source-lost", help="Do not read the source: it is gone, or too slow to wait for.")
    ] = False,
    leave_behind: LeaveBehind = None,
    without_group: WithoutGroups = None,
    only_forward: OnlyForward = False,
    patience: Patience = 120.0,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = "text",
) -> None:
    """Move consumer groups from a flow's source to its target: end the flow, commit their exact places, move ACLs."""
    from reconciler.failover.failover import Failover
    from reconciler.failover.options import FailoverOptions

    if until_caught_up and source_lost:
        message = "a lost source cannot be caught up with"
        raise typer.BadParameter(message, param_hint="--until-caught-up")
    check_can_ask(dry_run or yes, has_preview=True)
    check_patterns(group, "--group", any_text=True)
    allowed = allowance(leave_behind, without_group)
    topology = load_topology(files)
    chosen = chosen_flow(topology, flow)
    with stderr_console().status("looking at the clusters"):
        leaving = Failover(topology, chosen, FailoverOptions(group, source_lost, only_forward))
        plan = leaving.plan()
        acls = acl_plan(topology, chosen, failed_over=True, source_lost=source_lost)
    try:
        if output == "text":
            _print(plan, acls)
        if dry_run:
            if output == "json":
                print_json(_json(plan, acls, None, ()))
            stderr_console().print("dry run: nothing was changed", style="dim")
        leaving.check_allowed(plan, allowed, until_caught_up=until_caught_up)
        if dry_run:
            return
        if not yes:
            confirm(flow)
        _carry_out(topology, leaving, (plan, acls), _Manner(until_caught_up, patience, output, allowed))
    finally:
        leaving.close()


@dataclass(frozen=True)
class _Manner:
    """How it is done.

    Attributes:
        until_caught_up: whether everything is to be copied first.
        patience: seconds to wait for that, and for the flow's end.
        output: how the outcome is written.
        allowed: what may be left behind.
    """

    until_caught_up: bool
    patience: float
    output: TextOrData
    allowed: Allowance


def _carry_out(topology: Topology, leaving: Failover, plans: tuple[FailoverPlan, Plan], manner: _Manner) -> None:
    from reconciler.failover.groups.group_positions import untranslated
    from reconciler.report.failover import further_lines

    plan, acls = plans

    def beat() -> None:
        locks.check(plan.target)

    # Locks look at the sources of all flows into the target: this one may be gone, and others need not answer.
    with Locks(replace(topology, flows=()), (plan.target,), LOCK_SECONDS, TERMINAL) as locks:
        leaving.check_same(plan)
        if manner.until_caught_up and plan.state is None:
            with stderr_console().status("waiting until everything is copied"):
                leaving.wait_until_caught_up(manner.patience, beat, manner.allowed)
        beat()
        locks.interrupts.change()
        state = leaving.begin()
        with stderr_console().status("waiting until the flow has ended"):
            leaving.wait_until_ended(manner.patience, beat)
            leaving.wait_until_settled(state, manner.patience, beat)
        if manner.until_caught_up or state.phase == "ending":
            # It may have ended before all was copied, and producers may have written meanwhile.
            leaving.check_left(manner.allowed, until_caught_up=manner.until_caught_up)
        state = leaving.cut(state)
        found = leaving.carried(leaving.crossings())
        moved = leaving.move(state, found)
        problems = [*moved.problems, *untranslated(found, plan.target, manner.allowed)]
        problems += carry_acls_out(topology, acls, locks.check)
    if manner.output == "json":
        print_json(_json(plan, acls, moved.count, problems, moved.further))
    console = stderr_console()
    console.print(f"flow {plan.flow} is failed over: {moved.count:,} positions are committed at {plan.target}")
    for line in further_lines(moved.further, plan.target):
        console.print(line)
    console.print(
        f"declare `failed-over: true` for it, so that plans show it; `anabranch failback --flow {plan.flow}` moves "
        "its groups back",
        style="dim",
    )
    if problems:
        print_problems(dict.fromkeys(problems))
        raise typer.Exit(1)


def _print(plan: FailoverPlan, acls: Plan) -> None:
    from reconciler.report.failover import acls_lines, failover_lines

    for line in (*failover_lines(plan), *acls_lines(acls)):
        stdout_console().print(line)


def _json(
    plan: FailoverPlan, acls: Plan, done: int | None, problems: Sequence[Problem], further: Sequence[Carried] = ()
) -> dict[str, Any]:
    from reconciler.report.failover import failover_json, further_json, outcome_json

    return outcome_json(failover_json(plan), acls, done, problems) | further_json(further)


# --- shared with failback --------------------------------------------------------------------------------------------


def chosen_flow(topology: Topology, name: str) -> Flow:
    """Return a flow by its name.

    Raises:
        typer.BadParameter: there is none, or it is not enabled.
    """
    found = declared_flow(topology, name)
    if not found.enabled:
        message = f"flow {name} is not enabled: it copies nothing"
        raise typer.BadParameter(message, param_hint="--flow")
    return found


def allowance(leave_behind: str | None, without_group: Sequence[str] | None) -> Allowance:
    """Return what may be left behind, from the options.

    Raises:
        typer.BadParameter: a value has another form.
    """
    check_patterns(without_group, "--without-group", any_text=True)
    groups = tuple(without_group or ())
    if leave_behind is None or leave_behind == _UNKNOWN:
        return Allowance(None if leave_behind else 0, groups)
    # As the plan shows it, or without its commas.
    number = leave_behind.replace(",", "")
    if not (number.isascii() and number.isdecimal()):
        message = f"expected a number of records, or {_UNKNOWN}; found {leave_behind}"
        raise typer.BadParameter(message, param_hint="--leave-behind")
    return Allowance(int(number), groups)


def confirm(flow: str) -> None:
    """Have the operator type the flow's name.

    Raises:
        typer.Exit: 1, something else was typed.
    """
    if ask(f"Type the flow's name ({flow}) to go on:") != flow:
        stderr_console().print("Nothing was changed.")
        raise typer.Exit(1)
