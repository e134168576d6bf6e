"""`anabranch failback`: copy back what came to a flow's target meanwhile, and take everybody back to its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reconciler.cli.common import (
    Files,
    TextOrJson,
    load_topology,
    print_json,
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
    Yes,
    check_can_ask,
    chosen_flow,
    confirm,
)
from reconciler.cli.failover_acls import acl_plan, carry_acls_out
from reconciler.cli.locking import Locks
from reconciler.model.errors import DeclaredInputError, EnvironmentFault, Problem
from reconciler.model.steps import Plan
from reconciler.model.topology import Topology

if TYPE_CHECKING:
    from reconciler.failover.returning import Coming
    from reconciler.model.failover import FailbackPlan

# What comes while it is copied back is copied in another turn; who goes on writing must be stopped.
_MOST_TURNS = 4


@dataclass(frozen=True)
class _Export:
    """Where records go that are about to be dropped.

    Attributes:
        folder: of files.
        topic: a topic of the flow's target.
    """

    folder: Path | None = None
    topic: str | None = None


def failback(
    files: Files,
    *,
    flow: FlowName,
    group: GroupNames = None,
    rebuild: Annotated[
        list[str] | None,
        typer.Option(
            "--rebuild", metavar="TOPIC", help="Make this original anew, as its copy is, if they diverged; repeatable."
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="DIR", file_okay=False, help="Keep records that are dropped as files there."),
    ] = None,
    export_topic: Annotated[
        str | None,
        typer.Option("--export-topic", metavar="NAME", help="Keep them in this new topic of the flow's target."),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    output: Output = "text",
) -> None:
    """Take everybody back to a flow's source: copy back what came meanwhile, commit exact places, go on as declared."""
    from reconciler.failover.returning import Coming, Wishes

    if export is not None and export_topic is not None:
        message = "records are exported to files or to a topic"
        raise typer.BadParameter(message, param_hint="--export-topic")
    check_can_ask(dry_run, yes)
    topology = load_topology(files)
    chosen = chosen_flow(topology, flow)
    wishes = Wishes(None if group is None else tuple(group), frozenset(rebuild or ()))
    with stderr_console().status("looking at the clusters"):
        coming = Coming(topology, chosen, wishes)
        plan = coming.plan()
        acls = acl_plan(topology, chosen, failed_over=False)
    try:
        if output == "text":
            _print(plan, acls)
        elif dry_run:
            print_json(_json(plan, acls, None, ()))
        coming.check_divergence(plan)
        _check_export(plan, _Export(export, export_topic))
        if dry_run:
            stderr_console().print("dry run: nothing was changed", style="dim")
            return
        if not yes:
            confirm(flow)
        _carry_out(topology, coming, (plan, acls), _Export(export, export_topic), output)
    finally:
        coming.close()


def _check_export(plan: FailbackPlan, export: _Export) -> None:
    """Make sure that it is known where records go that are dropped.

    Raises:
        DeclaredInputError: AB708, it is not.
    """
    dropped = [one for one in plan.topics if one.is_diverged and one.is_rebuilt and one.diverged]
    if dropped and export == _Export():
        problems = [
            Problem(
                "AB708",
                f"flow {plan.flow}, topic {one.topic}",
                f"{one.diverged:,} records of it would be dropped, and are nowhere else",
                "say where they are kept: --export DIR, or --export-topic NAME",
            )
            for one in dropped
        ]
        raise DeclaredInputError(problems)


def _carry_out(
    topology: Topology, coming: Coming, plans: tuple[FailbackPlan, Plan], export: _Export, output: TextOrJson
) -> None:
    from reconciler.failover.carry import untold

    plan, acls = plans
    if plan.state.phase == "ending":
        # Nobody was moved, and nobody may write to the copies yet.
        with Locks(topology, (plan.target,), LOCK_SECONDS):
            coming.end()
        stderr_console().print(f"the failover of flow {plan.flow} is called off: nobody was moved, and it goes on")
        return
    console = stderr_console()
    with Locks(topology, (plan.target,), LOCK_SECONDS) as locks:
        locks.check(plan.target)
        locks.interrupts.change()
        _exported(topology, coming, plan, export)
        coming.begin(plan)
        for name in coming.rebuild(plan):
            console.print(f"{name} was made anew at {plan.source}", style="dim")
        _copy_back(topology, coming, plan)
        problems = carry_acls_out(topology, acls, locks.check)
        for _ in range(_MOST_TURNS):
            locks.check(plan.target)
            if not (left := coming.not_back(plan)):
                break
            _copy_back(topology, coming, plan)
        else:
            raise EnvironmentFault(_still_written(plan, left))
        coming.hand_back(plan)
        found = coming.carried(coming.state, plan.topics)
        done, refused = coming.move(found)
        problems += [*refused, *untold(found, plan.source)]
        coming.end()
    if output == "json":
        print_json(_json(plan, acls, done, problems))
    console.print(f"flow {plan.flow} is back: {done} positions are committed at {plan.source}, and it goes on")
    if any(flow.name == plan.flow and flow.failed_over for flow in topology.flows):
        hint = "the file still says `failed-over: true`: take it out and apply, or the flow stays as it is"
        console.print(hint, style="yellow")
    if problems:
        print_problems(dict.fromkeys(problems))
        raise typer.Exit(1)


def _exported(topology: Topology, coming: Coming, plan: FailbackPlan, export: _Export) -> None:
    """Keep what is about to be dropped."""
    from reconciler.failover.diverged import export_files, export_topic

    parts = coming.diverged(plan)
    if not parts:
        return
    source, target = topology.clusters[plan.source], topology.clusters[plan.target]
    if export.folder is not None:
        for topic, path in export_files(source, parts, export.folder).items():
            stderr_console().print(f"records of {topic} that never crossed are in {path}")
    elif export.topic is not None:
        count = export_topic(source, parts, target, export.topic)
        stderr_console().print(f"{count:,} records that never crossed are in topic {export.topic} of {plan.target}")


def _copy_back(topology: Topology, coming: Coming, plan: FailbackPlan) -> None:
    """Copy back what is at the target now.

    Raises:
        EnvironmentFault: AB709, some partitions are parked.
        typer.Exit: somebody has ended it.
    """
    from reconciler.cli.replicate import default_state_dir, parked_problem, warn
    from reconciler.replicator.drive import Drive, Ending, Watcher, Wishes, new_run

    run = new_run()
    specs = coming.specs(plan, run)
    if not specs:
        return
    console = stderr_console()

    def say(text: str) -> None:
        console.print(text, style="dim")

    watcher = Watcher(warn=warn, seen=lambda _: None, phase=say, note=say)
    folder = default_state_dir() / topology.name / run
    wishes = Wishes(until_caught_up=True, spark=topology.spark(plan.source))
    outcome = Drive(specs, folder, watcher, wishes).run()
    if outcome.ending is Ending.PARKED:
        raise EnvironmentFault([parked_problem(flow, one) for flow, one in outcome.parked])
    if outcome.ending is not Ending.CAUGHT_UP:
        console.print("Interrupted: run it again, what was done stays done.")
        raise typer.Exit(130)


def _still_written(plan: FailbackPlan, left: Sequence[tuple[str, int]]) -> list[Problem]:
    return [
        Problem(
            "AB709",
            f"cluster {plan.target}, topic {topic}, partition {partition}",
            f"it grows as fast as it is copied back: after {_MOST_TURNS} turns there is something new again",
            "stop who writes there, and run failback again",
        )
        for topic, partition in left
    ]


def _print(plan: FailbackPlan, acls: Plan) -> None:
    from reconciler.report.failover import acls_lines, failback_lines

    for line in (*failback_lines(plan), *acls_lines(acls)):
        stdout_console().print(line)


def _json(plan: FailbackPlan, acls: Plan, done: int | None, problems: Sequence[Problem]) -> dict[str, Any]:
    from reconciler.report.failover import acls_json, failback_json, problems_json

    return {
        "dryRun": done is None,
        "plan": {**failback_json(plan), "acls": acls_json(acls)},
        "committed": done,
        "problems": problems_json(problems),
    }
