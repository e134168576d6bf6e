"""Prints plans: before they are carried out, to files, as pictures; and the command that comes next."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from reconciler.cli.common import DEFAULT_FILE, print_problems, stderr_console, stdout_console
from reconciler.cli.environments import OPTION, chosen, without_environment
from reconciler.cli.formats import PlanFormat, PlanPicture, print_json
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.outcome import Outcome
from reconciler.model.planning.steps import Plan

DIFFERENT = 3
"""The exit code for changes or drift, where `--detailed-exitcode` is given."""


def show_plan(plan: Plan, output: PlanFormat, asks: bool) -> None:
    """Print a plan before it is carried out; JSON comes behind, with what became of it.

    Args:
        plan: what would be done.
        output: of the command.
        asks: whether the operator is asked, and must read the plan before: then it goes to stderr.
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


def tell_next(command: str, files: Collection[Path], options: Sequence[str] = (), note: str = "") -> None:
    """Print to stdout which command comes next, below what was printed as text, and a note on it."""
    own = without_environment(list(files))
    named = [] if own == [DEFAULT_FILE] else own
    environment = [OPTION, chosen()] if chosen() else []
    said = shlex.join(["anabranch", command, *map(str, named), *options, *environment])
    stdout_console().print(f"next: {said}{note}", style="dim")


def print_picture(topology: Topology, plan: Plan, output: PlanPicture) -> None:
    """Draw a plan to stdout, what changes in colour."""
    from reconciler.report.plan.to_picture import plan_mermaid, plan_svg

    draw = plan_svg if output == "svg" else plan_mermaid
    sys.stdout.write(draw(topology, plan))


def print_outcome(plan: Plan, outcome: Outcome, output: PlanFormat) -> None:
    """Print what became of a plan, which was printed before where it is not JSON."""
    from reconciler.report.plan.outcome import outcome_lines
    from reconciler.report.plan.to_json import outcome_json, plan_json

    if output == "json":
        print_json({"plan": plan_json(plan), "outcome": outcome_json(outcome)})
    elif not plan.changes_nothing:
        stdout_console().print("", *outcome_lines(outcome), sep="\n")
    stopped = [outcome.stopped] if outcome.stopped else []
    problems = [*(failure.problem for failure in outcome.failed), *outcome.not_in_force, *stopped]
    print_problems(dict.fromkeys(problems))
