"""What every command shares: the topology argument, consoles, and how problems are printed.

The commands call it. It must stay light, because every command pays for it: `rich` and the other rooms are imported
where they are used.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from reconciler.cli.environments import in_environment
from reconciler.model.base.errors import AnabranchError, Problem
from reconciler.operate.reporter import Emphasis, Reporter
from reconciler.operate.targets import InvalidArgument

if TYPE_CHECKING:
    from reconciler.cli.log import EventLog
    from reconciler.model.declared.fields import Field
    from reconciler.model.declared.topology import Topology
    from reconciler.report.text.line import Line, Terminal

# The log that is open, if one is.
_logs: list[EventLog] = []
_STYLES: dict[Emphasis, str | None] = {"detail": "dim", "info": None, "caution": "yellow"}

DEFAULT_FILE = Path("anabranch.yaml")
FILE_VARIABLE = "ANABRANCH_FILE"


def default_files() -> list[Path]:
    """Return the topology files of a command line that names none.

    Raises:
        typer.BadParameter: neither the variable nor the folder has any.
    """
    if named := [Path(one) for one in os.environ.get(FILE_VARIABLE, "").split(os.pathsep) if one]:
        return named
    if not DEFAULT_FILE.exists():
        message = f"name topology files, or set {FILE_VARIABLE}: there is no {DEFAULT_FILE} here"
        raise typer.BadParameter(message, param_hint="FILE")
    return [DEFAULT_FILE]


def has_default_files() -> bool:
    """Return whether the variable or the folder has topology files for a command line that names none."""
    return bool(os.environ.get(FILE_VARIABLE)) or DEFAULT_FILE.exists()


Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...",
        default_factory=default_files,
        callback=in_environment,
        show_default=False,
        help=f"Topology files; several are one topology. - reads standard input. Default: ${FILE_VARIABLE}, else "
        f"{DEFAULT_FILE}.",
    ),
]


def stdout_console() -> Terminal:
    """Return a console for data: colour on a terminal only, and never with NO_COLOR; text is no markup."""
    from reconciler.report.text.line import Terminal

    return Terminal()


def stderr_console() -> Terminal:
    """Return a console for progress, warnings and errors; the same rules.

    While lines are shown in place on the same terminal it is their console, which prints above them.
    """
    from reconciler.report.text.line import Terminal, live_terminal

    console = Terminal(stderr=True)
    return live_terminal() or console if console.is_terminal else console


def log_to(log: EventLog | None) -> None:
    """Have `say`, `print_problems` and `print_log` write into a log from now on; None ends that."""
    _logs[:] = [] if log is None else [log]


def say(text: str, style: str | None = "dim") -> None:
    """Print to stderr what has happened."""
    if _logs:
        _logs[-1].say(text)
    else:
        stderr_console().print(text, style=style)


def dim(text: str) -> Line:
    """Return a line that stands back."""
    from reconciler.report.text.line import Line

    return Line(text, style="dim")


class NoTerminal(AnabranchError):
    """A command has a question and no terminal; `main` adds the command line that needs no answer.

    Args:
        has_preview: whether the command has `--dry-run`.
    """

    exit_code = 2

    def __init__(self, has_preview: bool = False) -> None:
        self._has_preview = has_preview
        super().__init__(self.beside(()))

    def beside(self, arguments: Sequence[str]) -> Problem:
        """Return what is printed, with the command line that was typed."""
        end = arguments.index("--") if "--" in arguments else len(arguments)
        line = shlex.join(["anabranch", *arguments[:end], "--yes", *arguments[end:]])
        preview = "--dry-run shows what would be done; " if self._has_preview else ""
        message = "nothing was changed: there is no terminal on which to confirm it"
        return Problem("AB144", "", message, f"{preview}to confirm it beforehand: {line}")


def check_can_ask(yes: bool, has_preview: bool = False) -> None:
    """Check that there is a terminal to read the answer from, where one is needed.

    Args:
        yes: whether the answer was given beforehand, or none is needed.
        has_preview: whether the command has `--dry-run`.

    Raises:
        NoTerminal: AB144, there is none.
    """
    if not (yes or sys.stdin.isatty()):
        raise NoTerminal(has_preview)


def ask(question: str) -> str | None:
    """Print a question to stderr and return the answer, or None at the end of stdin; typer's own prints to stdout."""
    stderr_console().print(question, end=" ")
    said = sys.stdin.readline()
    return said.strip() if said else None


def go_on() -> None:
    """Ask whether to go on.

    Raises:
        typer.Exit: the answer is not yes.
    """
    if (ask("Carry this out? [y/N]") or "").lower() not in {"y", "yes"}:
        stderr_console().print("Nothing was changed.")
        raise typer.Exit(1)


def confirm(topology: Topology, deleted: int) -> None:
    """Have the operator type the topology's name.

    Raises:
        typer.Exit: something else was typed.
    """
    what = f"This deletes {deleted} topic{'' if deleted == 1 else 's'} with all records." if deleted else ""
    if ask(f"{what} Type the topology's name ({topology.name}) to go on:".strip()) != topology.name:
        stderr_console().print("Nothing was changed.")
        raise typer.Exit(1)


def load_topology(files: Iterable[Path]) -> Topology:
    """Return the one topology that `files` declare; warnings go to stderr.

    Raises:
        DeclaredInputError: with every problem of every file.
    """
    from reconciler import declare

    return declare.load(tuple(files), warn=lambda warning: print_problems((warning,), severity="warning"))


def load_with_fields(files: Iterable[Path]) -> tuple[Topology, dict[str, tuple[Field, ...]]]:
    """Return the topology that `files` declare, and every field of each flow; errors are those of `load_topology`."""
    from reconciler import declare

    return declare.load_with_fields(tuple(files), warn=lambda warning: print_problems((warning,), severity="warning"))


def print_problems(problems: Iterable[Problem], severity: Literal["error", "warning"] = "error") -> None:
    """Print each problem to stderr: where, what, the code, and on a second line the remedy.

    The part of `where` that stands in brackets (a JSON path, an address) goes behind the message, so that
    `file:line:column:` comes first and editors find the place.
    """
    from reconciler.report.text.line import Line, Lines

    if _logs:
        for problem in problems:
            _logs[-1].problem(problem, severity)
        return
    console = stderr_console()
    colour = "red" if severity == "error" else "yellow"
    for problem in problems:
        place, detail = _split_where(problem.where)
        line = Line.assemble(
            (f"{place}: " if place else "", "bold"),
            ("warning: " if severity == "warning" else "", colour),
            problem.message,
            (f" ({detail})" if detail else "", "dim"),
            (problem.tag, colour),
        )
        console.print(Lines([line, Line(f"    → {problem.remedy}")] if problem.remedy else [line]))


def print_log(lines: Iterable[str]) -> None:
    """Print lines of a log to stderr, below the problem that they belong to."""
    for line in lines:
        if _logs:
            _logs[-1].say(line.expandtabs())
            continue
        stderr_console().print(f"    {line.expandtabs()}", style="dim")


class TerminalReporter(Reporter):
    """Prints what operations report to stderr, or into the log that is open."""

    def note(self, text: str, emphasis: Emphasis = "detail") -> None:
        """Print a line: dim, plain, or yellow."""
        say(text, _STYLES[emphasis])

    def warn(self, problems: Iterable[Problem]) -> None:
        """Print warnings."""
        print_problems(problems, severity="warning")

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show on a terminal that something is under way."""
        with stderr_console().status(what):
            yield

    @contextmanager
    def counting(self, what: str, total: int) -> Iterator[Callable[[], None]]:
        """Show a progress bar on a terminal."""
        from rich.progress import Progress

        console = stderr_console()
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            bar = progress.add_task(what, total=total)
            yield lambda: progress.advance(bar)


TERMINAL = TerminalReporter()
"""Passed to every operation that a command calls."""


def as_usage(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that ends with 2 and names the option where an operation raises InvalidArgument."""

    @wraps(command)
    def run(*arguments: object, **options: object) -> None:
        try:
            command(*arguments, **options)
        except InvalidArgument as error:
            raise typer.BadParameter(error.message, param_hint=f"--{error.argument}") from None

    return run


def _split_where(where: str) -> tuple[str, str]:
    """Split `place (detail)` in two; the detail is empty where there is none."""
    if not where.endswith(")"):
        return where, ""
    place, _, detail = where[:-1].rpartition(" (")
    return (place, detail) if place else (where, "")
