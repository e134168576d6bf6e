"""What `plan` and `apply` share: which targets, what is there, what would be done, and how that is printed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from reconciler.cli.common import print_json, stderr_console, stdout_console
from reconciler.cli.targeting import check_names
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import ObservedCluster
from reconciler.model.planning.removals import DeletionKind
from reconciler.model.planning.steps import Notice, Plan

PlanFormat = Literal["text", "json", "yaml", "markdown"]
PlanPicture = Literal["mermaid", "svg"]
PlanFormatOrPicture = Literal["text", "json", "yaml", "markdown", "mermaid", "svg"]

DIFFERENT = 3
"""The exit code for changes or drift, where `--detailed-exitcode` asks for it."""

Clusters = Annotated[
    list[str] | None,
    typer.Option("--clusters", metavar="A,B", help="Only the flows into these clusters; a comma list, or repeated."),
]


def chosen_targets(topology: Topology, clusters: Sequence[str] | None) -> tuple[str, ...]:
    """Return the aliases that `--clusters` names, or every target of an enabled flow, in the order of declaration.

    Raises:
        typer.BadParameter: an alias is not declared, or none is named.
    """
    if not clusters:
        return topology.targets
    named = [alias.strip() for item in clusters for alias in item.split(",") if alias.strip()]
    for alias in named:
        if alias not in topology.clusters:
            message = f"no cluster {alias} is declared; there are {', '.join(topology.aliases)}"
            raise typer.BadParameter(message, param_hint="--clusters")
    if not named:
        # An empty variable of a pipeline must not pass for "nothing to do".
        message = f"it names no cluster; there are {', '.join(topology.aliases)}"
        raise typer.BadParameter(message, param_hint="--clusters")
    return tuple(alias for alias in topology.aliases if alias in named)


def changed_clusters(topology: Topology, clusters: Sequence[str] | None) -> tuple[str, ...]:
    """Return the aliases of what is declared to be changed: targets, and sources that say whom tasks log in as.

    Raises:
        typer.BadParameter: an alias is not declared.
    """
    targets = chosen_targets(topology, clusters)
    if clusters:
        return targets
    sources = {flow.source for flow in topology.flows if flow.enabled}
    granted = {alias for alias in sources if topology.clusters[alias].replicator is not None}
    return tuple(alias for alias in topology.aliases if alias in targets or alias in granted)


def planned_clusters(topology: Topology, clusters: Sequence[str] | None) -> tuple[tuple[str, ...], tuple[Notice, ...]]:
    """Return the aliases of what an apply may change, and what is to be said of those that could not be asked.

    Without `--clusters` these are also the clusters that no enabled flow leads into any more, and where flows are in
    force: there they end.

    Raises:
        typer.BadParameter: an alias is not declared.
    """
    declared = changed_clusters(topology, clusters)
    if clusters or not topology.flows:
        return declared, ()
    from reconciler.observe.elsewhere import in_force_elsewhere

    with stderr_console().status("looking where flows are in force"):
        ending, notices = in_force_elsewhere(topology, chosen_targets(topology, None))
    return tuple(alias for alias in topology.aliases if alias in declared or alias in ending), notices


@dataclass(frozen=True)
class PlanScope:
    """Of what a plan is.

    Attributes:
        topics: remote topics; none means all.
        deletes: of which kinds things are deleted: copies that the declaration asks for no longer, and what others
            granted on copies.
        notices: what is said of clusters that could not be asked whether it is for them.
    """

    topics: tuple[str, ...] = ()
    deletes: frozenset[DeletionKind] = frozenset()
    notices: tuple[Notice, ...] = ()


def observe_and_plan(
    topology: Topology, targets: Sequence[str], scope: PlanScope | None = None, also: Collection[str] = ()
) -> tuple[Plan, dict[str, ObservedCluster]]:
    """Look at the clusters and return what would be done, and what it rests on.

    Args:
        topology: what is declared.
        targets: aliases of the targets that are planned for.
        scope: of what the plan is; by default of all.
        also: aliases of clusters that are looked at as targets are, and not planned for.

    Raises:
        typer.BadParameter: the scope names a topic that is not known.
        Unreachable: AB310, some clusters do not answer.
        EnvironmentFault: AB304, AB311, AB312, AB313, a cluster cannot be read; AB360 to AB362, it does not allow what
            replication needs, or what a flow demands.
        Refused: AB401 to AB409, AB422, AB452 and AB453, a guardrail stands in the way; AB423, another cluster answers;
            AB450 and AB451, a target would refuse what is planned.
    """
    from reconciler.observe.topology import observe
    from reconciler.plan.ahead import build_plan_ahead
    from reconciler.plan.part import known_names, narrowed, only
    from reconciler.plan.removal.prune import cleared, pruned
    from reconciler.provision.rehearsal import rehearsed

    with stderr_console().status("looking at the clusters"):
        observed = observe(topology, {*targets, *also}, resting_may_be_away=True)
    scope = scope or PlanScope()
    part = topology
    if scope.topics:
        check_names(scope.topics, known_names(topology, observed, targets))
        part = narrowed(topology, observed, targets, scope.topics)
    there = answering(targets, observed)
    plan = build_plan_ahead(part, observed, there)
    plan = replace(plan, notices=(*plan.notices, *scope.notices))
    if "topic" in scope.deletes:
        plan = pruned(plan, topology, observed)
    if "acl" in scope.deletes:
        plan = cleared(plan, topology, observed)
    plan = only(plan, scope.topics, topology, observed) if scope.topics else plan
    return rehearsed(plan, topology), observed


def answering(targets: Sequence[str], observed: Mapping[str, ObservedCluster]) -> tuple[str, ...]:
    """Return the targets that answer: the others are sources of flows that are failed over, and need not."""
    return tuple(alias for alias in targets if not observed[alias].is_away)


def tell_away(observed: Mapping[str, ObservedCluster]) -> None:
    """Say on stderr which clusters are left out, as they do not answer and need not."""
    for alias in sorted(alias for alias, seen in observed.items() if seen.is_away):
        said = f"{alias} does not answer, and need not while all flows from it are failed over: it is left out"
        stderr_console().print(said, style="yellow")


def show_plan(plan: Plan, output: PlanFormat, asks: bool) -> None:
    """Print a plan before it is carried out; JSON comes behind, with what became of it.

    Args:
        plan: what would be done.
        output: of the command.
        asks: whether somebody is asked, who must see it before: then on stderr.
    """
    if output != "json":
        print_plan(plan, output)
    elif asks and not plan.changes_nothing:
        from reconciler.report.plan.to_text import plan_text

        stderr_console().print(plan_text(plan))


def print_plan(plan: Plan, output: PlanFormat, longest: int | None = None, command: str = "") -> None:
    """Print a plan to stdout.

    Args:
        plan: what would be done.
        output: how.
        longest: characters of Markdown; None where it may be of any length.
        command: what prints the whole of it.
    """
    if output == "json":
        from reconciler.report.plan.to_json import plan_json

        print_json(plan_json(plan))
    elif output == "markdown":
        from reconciler.report.plan.to_markdown import plan_markdown

        sys.stdout.write(plan_markdown(plan, longest, command))
    else:
        from reconciler.report.plan.to_text import plan_text

        stdout_console().print(plan_text(plan))


def tell_next(command: str, files: Collection[Path], options: Sequence[str] = ()) -> None:
    """Say which command comes next, on stdout, below what was printed as text."""
    said = shlex.join(["anabranch", command, *map(str, files), *options])
    stdout_console().print(f"next: {said}", style="dim")


def print_picture(topology: Topology, plan: Plan, output: PlanPicture) -> None:
    """Draw a plan to stdout, what changes in colour."""
    from reconciler.report.plan.to_picture import plan_mermaid, plan_svg

    draw = plan_svg if output == "svg" else plan_mermaid
    sys.stdout.write(draw(topology, plan))
