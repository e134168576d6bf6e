"""What the commands share that show the status: once or again and again, `--watch [SECONDS]`, and which flow."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from reconciler.cli.common import print_problems, stderr_console, stdout_console
from reconciler.cli.formats import TextOrData, print_in_line, print_json
from reconciler.cli.optional_values import WATCH, WATCH_SECONDS, WATCH_SHORT
from reconciler.model.base.errors import together
from reconciler.model.base.text import utc
from reconciler.operate.watching import Lookout, StatusView

if TYPE_CHECKING:
    from reconciler.report.text.line import Line

# A day; what is not finite is refused by a bound as well.
_LONGEST_SECONDS = 86_400.0

Watch = Annotated[
    float | None,
    typer.Option(
        WATCH,
        WATCH_SHORT,
        metavar="[SECONDS]",
        min=0.1,
        max=_LONGEST_SECONDS,
        help=f"Look again every so many seconds ({WATCH_SECONDS:g} when none are given), until Ctrl-C.",
    ),
]


def starting(files: Iterable[Path]) -> str:
    """Return the command that runs the flows of `files`."""
    return shlex.join(["anabranch", "replicate", *map(str, files)])


@dataclass(frozen=True)
class Show:
    """How what was seen is shown.

    Attributes:
        lines: for people.
        value: as JSON types.
    """

    lines: Callable[[StatusView], Sequence[Line]]
    value: Callable[[StatusView], Any]


def tell(lookout: Lookout, show: Show, output: TextOrData, every: float | None) -> None:
    """Show what is seen, once, or every so many seconds until Ctrl-C.

    Raises:
        AnabranchError: when shown once: some targets could not be read, and what is shown is incomplete.
    """
    try:
        if every is None:
            with stderr_console().status("looking at the clusters"):
                look = lookout.look()
            _tell_once(look, show, output)
        else:
            _tell_again(lookout, show, output, every)
    except KeyboardInterrupt:
        # The way to end a watch: no error, and nothing is left half done.
        if every is None:
            raise
    finally:
        lookout.close()


def _tell_once(look: StatusView, show: Show, output: TextOrData) -> None:
    if output == "json":
        print_json(show.value(look))
    else:
        console = stdout_console()
        for line in show.lines(look):
            console.print(line)
    if look.failures:
        raise together(list(look.failures.values()))


def _tell_again(lookout: Lookout, show: Show, output: TextOrData, every: float) -> None:
    from reconciler.report.status.live import Screen

    known: set[str] = set()
    with contextlib.ExitStack() as stack:
        screen = stack.enter_context(Screen(stdout_console())) if output == "text" else None
        while True:
            look = lookout.look()
            for alias in look.failures.keys() - known:
                print_problems(look.failures[alias].problems)
            known = set(look.failures)
            if screen is None:
                print_in_line(show.value(look))
            else:
                screen.show([_heading(look), *show.lines(look)])
            time.sleep(every)


def _heading(look: StatusView) -> Line:
    from reconciler.report.text.line import Line

    when = utc(look.now)
    missing = f"   unreachable: {', '.join(sorted(look.failures))}" if look.failures else ""
    return Line.assemble((when, "dim"), (missing, "red"))
