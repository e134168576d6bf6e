"""`anabranch verify`: compare copies with their originals, record by record, and change nothing."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.common import Files, load_topology, print_problems, stderr_console, stdout_console
from reconciler.cli.completing import flow_names
from reconciler.cli.formats import FORMAT, PlanFormat, as_written, print_json
from reconciler.cli.replicate import made_state_dir, not_made
from reconciler.cli.shared_options import Clusters, Topics, declared_flow
from reconciler.model.base.errors import Problem, Refused, Unreachable, together
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.operate.flows.running import spark_of
from reconciler.operate.targets import chosen_targets

if TYPE_CHECKING:
    from reconciler.model.offsets.verification import Compared, Verification

_DIFFERENT = 1
_INCOMPLETE = 3
_UNREACHABLE_CODE = "AB310"


def verify(
    files: Files,
    *,
    output: Annotated[
        PlanFormat, typer.Option(*FORMAT, callback=as_written, help="How the result is written.")
    ] = "text",
    clusters: Clusters = None,
    flow: Annotated[
        list[str] | None,
        typer.Option(
            "--flow", "-f", metavar="NAME", autocompletion=flow_names, help="Only this flow; may be repeated."
        ),
    ] = None,
    topics: Annotated[
        list[str] | None,
        typer.Option("--topics", metavar="A,B", help="Only these originals; a comma list, or repeated."),
    ] = None,
    target: Topics = None,
    from_timestamp: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only from this time on, as 2026-11-01T00:00:00Z.")
    ] = None,
    quota: Annotated[
        str | None, typer.Option(metavar="RATE", help="Read at most so much from both sides together, as 50MB/s.")
    ] = None,
    tasks: Annotated[
        int | None, typer.Option(min=1, help="How many partitions at the same time; by default one per processor.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Keep there how far it is, and go on from there."),
    ] = None,
    copied_only: Annotated[
        bool, typer.Option("--copied-only", help="Ask for what is copied alone: what is not copied yet does not count.")
    ] = False,
    state_dir: Annotated[Path | None, typer.Option(help="Where Spark's log is kept.")] = None,
) -> None:
    """Compare copies with their originals: every record, its place, key, value, headers and timestamp."""
    from reconciler.replicator.spark import run_folders
    from reconciler.report.verify_progress import VerifyProgress
    from reconciler.verify.drive import Options, Verify, VerifyWatcher
    from reconciler.verify.survey import VerifyFilter

    named = _named(topics)
    topology = load_topology(files)
    chosen = _chosen_flows(topology, chosen_targets(topology, clusters), flow)
    wanted = VerifyFilter(named, tuple(target or ()), _moment(from_timestamp))
    spark, rate = spark_of(topology, [one.target for one in chosen]), _rate(quota)
    flows, unseen = _answering(topology, chosen)
    folder = _folder(state_dir, topology)
    options = Options(folder, wanted, tasks or os.cpu_count() or 1, rate, resume, spark, copied_only)
    with VerifyProgress(stderr_console()) as progress:
        # Whatever a cluster has that does not answer may have any name.
        looked = (lambda _: None) if unseen else partial(_check_names, named, tuple(target or ()))
        watcher = VerifyWatcher(_warn, progress.phase, progress.seen, looked)
        found = Verify(topology, flows, options, watcher).run()
    run_folders.remove(folder)
    found = replace(found, unseen=(*unseen, *found.unseen))
    print_problems(found.notices, severity="warning")
    _print(found, output)
    _end(found)


def compared(topology: Topology, flows: Sequence[Flow], remotes: Sequence[str]) -> tuple[Compared, ...]:
    """Compare some remote topics with their originals, for a command that rests on it; return each partition.

    Args:
        topology: what is declared.
        flows: those that fill them; their clusters answer.
        remotes: the remote topics.

    Raises:
        AnabranchError: nothing can be compared.
    """
    from reconciler.replicator.spark import run_folders
    from reconciler.report.verify_progress import VerifyProgress
    from reconciler.verify.drive import Options, Verify, VerifyWatcher
    from reconciler.verify.survey import VerifyFilter

    spark, folder = spark_of(topology, [one.target for one in flows]), _folder(None, topology)
    options = Options(folder, VerifyFilter((), tuple(remotes), None), os.cpu_count() or 1, None, None, spark)
    with VerifyProgress(stderr_console()) as progress:
        found = Verify(topology, flows, options, VerifyWatcher(_warn, progress.phase, progress.seen)).run()
    run_folders.remove(folder)
    return found.partitions


def _named(topics: Sequence[str] | None) -> tuple[str, ...]:
    """Return the originals that `--topics` names, none where it is not given."""
    named = tuple(name.strip() for item in topics or () for name in item.split(",") if name.strip())
    if topics and not named:
        # An empty variable of a pipeline must not pass for "every topic".
        message = "it names no topic; leave it out to compare all"
        raise typer.BadParameter(message, param_hint="--topics")
    return named


def _check_names(originals: Sequence[str], remotes: Sequence[str], known: Collection[tuple[str, str]]) -> None:
    """Check that each given name is one of what is compared: a misspelt one would pass for equal.

    Args:
        originals: what `--topics` names.
        remotes: what `--target` names.
        known: originals and their copies.

    Raises:
        typer.BadParameter: one is not.
    """
    for option, names, which in (("--topics", originals, 0), ("--target", remotes, 1)):
        for name in names:
            if name not in {one[which] for one in known}:
                message = f"no flow that is compared copies such a topic: {name}"
                raise typer.BadParameter(message, param_hint=option)


def _folder(state_dir: Path | None, topology: Topology) -> Path:
    from reconciler.replicator.spark import run_folders

    folder = made_state_dir(state_dir) / topology.name / f"verify-{uuid.uuid4().hex[:12]}"
    try:
        run_folders.make(folder)
    except OSError as error:
        raise not_made(folder, "--state-dir", error) from None
    return folder


def _warn(problem: Problem) -> None:
    print_problems((problem,), severity="warning")


def _end(found: Verification) -> None:
    """End with the exit code: clusters that do not answer come before differences, as in `drift`."""
    if found.failures:
        print_problems(found.failures)
    if any(problem.code == _UNREACHABLE_CODE for problem in found.failures):
        raise typer.Exit(Unreachable.exit_code)
    if found.different or found.failures:
        raise typer.Exit(_DIFFERENT)
    if found.is_equal is not True:
        raise typer.Exit(_INCOMPLETE)


def _chosen_flows(topology: Topology, targets: Sequence[str], names: Sequence[str] | None) -> tuple[Flow, ...]:
    for name in names or ():
        declared_flow(topology, name)
    flows = tuple(one for one in topology.flows_into(targets) if not names or one.name in names)
    if not flows:
        message = f"no enabled flow leads into {', '.join(targets) or 'any cluster'}"
        raise typer.BadParameter(message, param_hint="--clusters")
    return flows


def _answering(topology: Topology, flows: Sequence[Flow]) -> tuple[tuple[Flow, ...], tuple[Problem, ...]]:
    """Return the flows whose clusters both answer, and why the others do not.

    Raises:
        Refused: AB423, one of them is another cluster than the declared one.
    """
    from reconciler.observe.reach import unreachable_among

    sides = dict.fromkeys(alias for flow in flows for alias in (flow.source, flow.target))
    failures = unreachable_among([topology.clusters[alias] for alias in sides])
    if refused := [failure for failure in failures.values() if isinstance(failure, Refused)]:
        raise together(refused)
    problems = tuple(problem for failure in failures.values() for problem in failure.problems)
    return tuple(flow for flow in flows if failures.keys().isdisjoint((flow.source, flow.target))), problems


def _moment(written: str | None) -> int | None:
    from reconciler.declare.documents.quantities import NO_MOMENT, moment

    if written is None:
        return None
    found = moment(written)
    if found == NO_MOMENT:
        message = f"no time: {written}; write it as 2026-11-01T00:00:00Z"
        raise typer.BadParameter(message, param_hint="--from-timestamp")
    return found


def _rate(written: str | None) -> float | None:
    from reconciler.declare.documents.quantities import byte_rate

    if written is None:
        return None
    try:
        found = byte_rate(written)
    except (KeyError, ValueError):
        found = 0
    if found <= 0:
        message = f"no rate: {written}; write it as 50MB/s"
        raise typer.BadParameter(message, param_hint="--quota")
    return float(found)


def _print(found: Verification, output: PlanFormat) -> None:
    from reconciler.report.verify import verification_json, verification_markdown, verification_text

    if output == "json":
        print_json(verification_json(found))
    elif output == "markdown":
        sys.stdout.write(verification_markdown(found))
    else:
        stdout_console().print(verification_text(found))
