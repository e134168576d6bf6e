"""`anabranch adopt`: take over topics that stand where copies would."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated

import typer

from reconciler.cli.common import TERMINAL, Files, check_can_ask, go_on, load_topology
from reconciler.cli.formats import FORMAT, PlanFormat, as_written
from reconciler.cli.migrate.former import (
    ConnectorName,
    From,
    MirrorGroup,
    OffsetsTopic,
    former_replicator,
    show_taken,
)
from reconciler.cli.planning import print_outcome, show_plan, tell_next
from reconciler.cli.shared_options import Clusters, LockWait, Topics
from reconciler.model.base.errors import EnvironmentFault
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.steps import Plan
from reconciler.operate.carrying import carry_out, refuse_when_moved_on, state_apart
from reconciler.operate.locking import Locks
from reconciler.operate.planning import report_away
from reconciler.operate.taking_over import taken_positions, write_positions
from reconciler.operate.targets import check_names, chosen_targets


def adopt(
    files: Files,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    output: Annotated[
        PlanFormat, typer.Option(*FORMAT, callback=as_written, help="How plan and outcome are written.")
    ] = "text",
    clusters: Clusters = None,
    target: Topics = None,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild",
            help="Write lost records of ownership anew, of copies that the records of copies prove to be ours.",
        ),
    ] = False,
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="With --rebuild: do not compare identical copies with their originals.")
    ] = False,
    former: From = None,
    offsets_topic: OffsetsTopic = None,
    connector: ConnectorName = None,
    group: MirrorGroup = None,
    wait: LockWait = 60.0,
) -> None:
    """Take over topics that stand where copies would, as MirrorMaker 2's: show the plan, ask, record them as ours."""
    topology = load_topology(files)
    targets, only = chosen_targets(topology, clusters), tuple(target or ())
    _check_options(yes=yes, rebuild=rebuild, no_verify=no_verify, goes_on=former is not None)
    replicator = former_replicator(former, offsets_topic, connector, group)
    # Before the lock is taken, for which other processes wait.
    against = _compared(topology, targets, only) if rebuild and not no_verify else {}
    make = partial(_rebuilt, against=against) if rebuild else partial(_adopted, goes_on=replicator is not None)
    with Locks(topology, targets, wait, TERMINAL) as locks:
        plan = _planned(topology, targets, only, make, tells=True)
        taken = [] if replicator is None else taken_positions(topology, targets, plan, replicator)
        show_plan(plan, output, asks=not yes)
        show_taken(taken)
        if not plan.changes_nothing and not yes:
            go_on()
            refuse_when_moved_on(plan, _planned(topology, targets, only, make))
        if locks.take_rest(plan):
            refuse_when_moved_on(state_apart(plan), state_apart(_planned(topology, targets, only, make)))
        outcome = carry_out(topology, plan, locks, "rebuilding" if rebuild else "adopting")
        print_outcome(plan, outcome, output)
        if taken and outcome.is_complete and (problems := write_positions(topology, taken)):
            raise EnvironmentFault(problems)
    if output == "text" and outcome.is_complete and outcome.done:
        tell_next("plan", files)
    if not outcome.is_complete:
        raise typer.Exit(locks.interrupts.exit_code)


def _check_options(*, yes: bool, rebuild: bool, no_verify: bool, goes_on: bool) -> None:
    """Check which options go together.

    Raises:
        typer.BadParameter: some do not.
    """
    if goes_on and rebuild:
        message = "it is about topics that are not ours yet, and --rebuild about those that are"
        raise typer.BadParameter(message, param_hint="--from")
    if no_verify and not rebuild:
        message = "it goes with --rebuild, which is not given"
        raise typer.BadParameter(message, param_hint="--no-verify")
    check_can_ask(yes)


Observed = Mapping[str, ObservedCluster]
Make = Callable[[Topology, Observed, Sequence[str], Sequence[str]], Plan]


def _planned(topology: Topology, targets: Sequence[str], only: Sequence[str], make: Make, tells: bool = False) -> Plan:
    from reconciler.plan.part import known_names

    observed = _observed(topology, targets)
    if tells:
        report_away(observed, TERMINAL)
    check_names(only, known_names(topology, observed, targets))
    return make(topology, observed, targets, only)


def _observed(topology: Topology, targets: Sequence[str]) -> Observed:
    from reconciler.observe.topology import observe

    with TERMINAL.working("looking at the clusters"):
        return observe(topology, targets, resting_may_be_away=True)


def _adopted(
    topology: Topology, observed: Observed, targets: Sequence[str], only: Sequence[str], *, goes_on: bool
) -> Plan:
    from reconciler.plan.adopt import adopt_plan

    return adopt_plan(topology, observed, targets, only, goes_on=goes_on)


def _rebuilt(
    topology: Topology,
    observed: Observed,
    targets: Sequence[str],
    only: Sequence[str],
    against: Mapping[str, str],
) -> Plan:
    from reconciler.plan.rebuild import rebuild_plan

    return rebuild_plan(topology, observed, targets, only, against)


def _compared(topology: Topology, targets: Sequence[str], only: Sequence[str]) -> dict[str, str]:
    """Compare what may have identical offsets with its originals; return, by remote topic, what is against it."""
    from reconciler.cli.verify import compared
    from reconciler.plan.rebuild import to_compare

    observed = _observed(topology, targets)
    names = to_compare(topology, observed, targets, only)
    if not names:
        return {}
    flows = [flow for flow in topology.flows_into(targets) if not observed[flow.source].is_away]
    found = compared(topology, flows, names)
    against = {name: "was not compared" for name in set(names) - {one.remote for one in found}}
    for one in found:
        if one.failure is not None:
            against[one.remote] = f"cannot be compared with its original: {one.failure.message}"
        # A partition that the copy lacks is none that differs: `apply` adds it.
        elif kinds := one.findings.by_kind.keys() - {"no-copy"}:
            against[one.remote] = f"partition {one.partition} differs from its original: {', '.join(sorted(kinds))}"
    return against
