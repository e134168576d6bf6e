"""`anabranch failback`: copy back what came to a flow's target meanwhile, and move groups back to its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reconciler.cli.common import (
    TERMINAL,
    Files,
    check_can_ask,
    load_topology,
    print_problems,
    stderr_console,
    stdout_console,
)
from reconciler.cli.failover import (
    LOCK_SECONDS,
    DryRun,
    FlowName,
    GroupNames,
    Output,
    WithoutGroups,
    Yes,
    allowance,
    chosen_flow,
    confirm,
)
from reconciler.cli.formats import TextOrData, print_json
from reconciler.cli.offsets.options import OnlyForward, check_patterns
from reconciler.model.base.errors import AnabranchError, DeclaredInputError, EnvironmentFault, Problem
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.steps import Plan
from reconciler.model.recorded.failover import Allowance
from reconciler.operate.failover.acls import acl_plan, carry_acls_out
from reconciler.operate.locking import Locks

if TYPE_CHECKING:
    from reconciler.failover.failback import Failback
    from reconciler.failover.topics.diverged import Part
    from reconciler.model.recorded.failover import FailbackPlan

# Records that come meanwhile are copied in another turn; producers that go on must be stopped.
_MOST_TURNS = 6

_Rebuilt = Annotated[
    list[str] | None,
    typer.Option(
        "--rebuild", metavar="TOPIC", help="Make this original anew, as its copy is, if they diverged; repeatable."
    ),
]
_LeftOut = Annotated[
    list[str] | None,
    typer.Option(
        "--leave-out", metavar="TOPIC", help="This original is gone: what came to its copy stays there; repeatable."
    ),
]


@dataclass(frozen=True)
class _Export:
    """Where records go that are about to be dropped.

    Attributes:
        folder: of files.
        topic: a topic of the flow's target.
    """

    folder: Path | None = None
    topic: str | None = None


@dataclass(frozen=True)
class _Manner:
    """How it is done.

    Attributes:
        export: where records go that are about to be dropped.
        allowed: which groups may be without a place.
        output: how the outcome is written.
    """

    export: _Export
    allowed: Allowance
    output: TextOrData


def failback(
    files: Files,
    *,
    flow: FlowName,
    group: GroupNames = None,
    rebuild: _Rebuilt = None,
    leave_out: _LeftOut = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="DIR", file_okay=False, help="Keep records that are dropped as files there."),
    ] = None,
    export_topic: Annotated[
        str | None,
        typer.Option("--export-topic", metavar="NAME", help="Keep them in this new topic of the flow's target."),
    ] = None,
    without_group: WithoutGroups = None,
    only_forward: OnlyForward = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = "text",
) -> None:
    """Move groups back to a flow's source: copy back what came meanwhile, commit exact places, go on as declared."""
    from reconciler.failover.failback import Failback
    from reconciler.failover.options import FailbackOptions

    if export is not None and export_topic is not None:
        message = "records are exported to files or to a topic"
        raise typer.BadParameter(message, param_hint="--export-topic")
    check_can_ask(dry_run or yes, has_preview=True)
    check_patterns(group, "--group", any_text=True)
    topology = load_topology(files)
    chosen = chosen_flow(topology, flow)
    allowed = allowance(None, without_group)
    names = None if group is None else tuple(group)
    wishes = FailbackOptions(names, frozenset(rebuild or ()), frozenset(leave_out or ()), only_forward)
    with stderr_console().status("looking at the clusters"):
        coming = Failback(topology, chosen, wishes)
        plan = coming.plan()
        acls = acl_plan(topology, chosen, failed_over=False)
    try:
        if output == "text":
            _print(plan, acls)
        elif dry_run:
            print_json(_json(plan, acls, None, ()))
        coming.check_divergence(plan)
        coming.check_places(plan, allowed)
        _check_export(flow, {one.topic: one.dropped for one in plan.topics}, _Export(export, export_topic))
        if dry_run:
            stderr_console().print("dry run: nothing was changed", style="dim")
            return
        if not yes:
            confirm(flow)
        _carry_out(topology, coming, (plan, acls), _Manner(_Export(export, export_topic), allowed, output))
    finally:
        coming.close()


def _check_export(flow: str, dropped: Mapping[str, int], export: _Export) -> None:
    """Make sure that it is known where records go that are dropped.

    Args:
        flow: of which flow.
        dropped: how many are, by original.
        export: where they go.

    Raises:
        DeclaredInputError: AB708, it is not.
    """
    if (topics := [topic for topic, count in dropped.items() if count]) and export == _Export():
        problems = [
            Problem(
                "AB708",
                f"flow {flow}, topic {topic}",
                f"{dropped[topic]:,} records of it would be dropped, and its copy does not have them",
                "choose where they are kept: --export DIR, or --export-topic NAME",
            )
            for topic in topics
        ]
        raise DeclaredInputError(problems)


def _carry_out(topology: Topology, coming: Failback, plans: tuple[FailbackPlan, Plan], manner: _Manner) -> None:
    from reconciler.failover.groups.group_positions import untranslated
    from reconciler.failover.topics.diverged import by_topic

    plan, acls = plans
    export, output = manner.export, manner.output
    console = stderr_console()
    # Locks look at the sources of all flows into the target; those of others need not answer.
    with Locks(replace(topology, flows=()), (plan.target,), LOCK_SECONDS, TERMINAL) as locks:
        locks.check(plan.target)
        coming.check_same(plan)
        if plan.state.phase == "ending":
            _call_off(topology, coming, plans, locks, output)
            return
        locks.interrupts.change()
        kept = coming.ends(plan)
        dropped = coming.dropped(plan)
        # A producer may have written to one since the plan was read.
        _check_export(plan.flow, by_topic(dropped), export)
        _exported(topology, dropped, plan, export)
        coming.begin(plan)
        for name in coming.rebuild(plan, kept):
            console.print(f"{name} was made anew at {plan.source}", style="dim")
        now, problems = _brought_back(topology, coming, (plan, acls), locks)
        # Groups read on where they are put: behind that nothing comes that might fail.
        problems += _uncrossed(coming, now)
        found = coming.carried(now)
        done, refused = coming.move(now, found)
        problems += [*refused, *untranslated(found, plan.source, manner.allowed)]
        coming.end()
    if output == "json":
        print_json(_json(plan, acls, done, problems))
    console.print(f"flow {plan.flow} is back: {done:,} positions are committed at {plan.source}, and it goes on")
    if any(flow.name == plan.flow and flow.failed_over for flow in topology.flows):
        hint = "the file still has `failed-over: true`: take it out and apply, or the flow stays as it is"
        console.print(hint, style="yellow")
    if problems:
        print_problems(dict.fromkeys(problems))
        raise typer.Exit(1)


def _call_off(
    topology: Topology, coming: Failback, plans: tuple[FailbackPlan, Plan], locks: Locks, output: TextOrData
) -> None:
    """End a failover that has only begun: no group was moved.

    Raises:
        typer.Exit: 1, an ACL that changed with it could not be turned back.
    """
    plan, acls = plans
    locks.interrupts.change()
    # Older releases change ACLs as soon as a failover has begun.
    problems = carry_acls_out(topology, acls, locks.check)
    coming.end()
    if output == "json":
        print_json(_json(plan, acls, 0, problems))
    said = f"the failover of flow {plan.flow} is called off: no group was moved, and it goes on"
    stderr_console().print(said)
    if problems:
        print_problems(dict.fromkeys(problems))
        raise typer.Exit(1)


def _uncrossed(coming: Failback, plan: FailbackPlan) -> list[Problem]:
    """Return what never crosses, or why that is unknown: the records are back, and the groups must follow."""
    try:
        return coming.uncrossed(plan)
    except AnabranchError as error:
        message = "whether anything was written there meanwhile that never crosses is not known"
        return [
            replace(one, message=f"{one.message}: {message}", remedy=f"{one.remedy}; `anabranch verify` shows it")
            for one in error.problems
        ]


def _brought_back(
    topology: Topology, coming: Failback, plans: tuple[FailbackPlan, Plan], locks: Locks
) -> tuple[FailbackPlan, list[Problem]]:
    """Copy back until nothing more comes, and hand over the copies; return how all stands, and what failed with ACLs.

    Raises:
        EnvironmentFault: AB709, it never ends, or some partitions are parked.
    """
    plan, acls = plans
    problems: list[Problem] | None = None
    turns = 0
    while True:
        locks.check(plan.target)
        # What comes meanwhile may come to topics to which nothing had come before.
        now = coming.look()
        coming.check_divergence(now)
        coming.begin(now)
        left = coming.not_back(now)
        is_back = not left
        if is_back and problems is None:
            # Without the permission to write, no producer leaves records behind.
            problems = carry_acls_out(topology, acls, locks.check)
            continue
        if problems is not None and is_back and not (left := coming.hand_back(now)):
            return now, problems
        if turns == _MOST_TURNS:
            raise EnvironmentFault(_still_written(plan, left))
        turns += 1
        if not is_back:
            _copy_back(topology, coming, now)


def _exported(topology: Topology, dropped: Mapping[Part, int], plan: FailbackPlan, export: _Export) -> None:
    """Keep what is about to be dropped."""
    from reconciler.failover.topics.diverged import export_files, export_topic

    if not dropped:
        return
    source, target = topology.clusters[plan.source], topology.clusters[plan.target]
    if export.folder is not None:
        for topic, path in export_files(source, list(dropped), export.folder).items():
            stderr_console().print(f"records of {topic} that its copy does not have are in {path}")
    elif export.topic is not None:
        count = export_topic(source, list(dropped), target, export.topic)
        said = f"{count:,} records that copies do not have are in topic {export.topic} of {plan.target}"
        stderr_console().print(said)


def _copy_back(topology: Topology, coming: Failback, plan: FailbackPlan) -> None:
    """Copy back what is at the target now.

    Raises:
        EnvironmentFault: AB709, some partitions are parked.
        typer.Exit: 130 or 143, a signal has stopped it; 1, another declaration is in force now.
    """
    from reconciler.cli.replicate import made_state_dir, warn
    from reconciler.operate.flows.running import parked_problem
    from reconciler.replicator.driver.driver import Driver, RunEnding, RunOptions, RunWatcher, new_run

    run = new_run()
    specs = coming.specs(plan, run)
    if not specs:
        return
    console = stderr_console()

    def say(text: str) -> None:
        console.print(text, style="dim")

    watcher = RunWatcher(warn=warn, seen=lambda _: None, phase=say, note=say)
    folder = made_state_dir(None) / topology.name / run
    wishes = RunOptions(until_caught_up=True, spark=topology.spark(plan.source))
    outcome = Driver(specs, folder, watcher, wishes).run()
    if outcome.ending is RunEnding.PARKED:
        raise EnvironmentFault([parked_problem(flow, one) for flow, one in outcome.parked])
    if outcome.ending is not RunEnding.CAUGHT_UP:
        console.print("Interrupted: run it again, what was done stays done.")
        raise typer.Exit(128 + outcome.signal if outcome.signal else 1)


def _still_written(plan: FailbackPlan, left: Sequence[tuple[str, int]]) -> list[Problem]:
    return [
        Problem(
            "AB709",
            f"cluster {plan.target}, topic {topic}, partition {partition}",
            f"it grows as fast as it is copied back: after {_MOST_TURNS} turns there is something new again",
            "stop the producers that write there, and run failback again",
        )
        for topic, partition in left
    ]


def _print(plan: FailbackPlan, acls: Plan) -> None:
    from reconciler.report.failover import acls_lines, failback_lines

    for line in (*failback_lines(plan), *acls_lines(acls)):
        stdout_console().print(line)


def _json(plan: FailbackPlan, acls: Plan, done: int | None, problems: Sequence[Problem]) -> dict[str, Any]:
    from reconciler.report.failover import failback_json, outcome_json

    return outcome_json(failback_json(plan), acls, done, problems)
