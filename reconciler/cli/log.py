"""The log on stderr of commands that run until they are stopped: one line for each event.

A line has time and level. On a terminal the state of flows is shown in place.

Commands that run for long open it; what `common` prints meanwhile goes through it.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import reconciler
from reconciler import starting
from reconciler.cli import common
from reconciler.model.base.errors import Problem

if TYPE_CHECKING:
    from reconciler.model.declared.flow import Flow
    from reconciler.model.tasks.status import TaskStatus
    from reconciler.report.status.live import Screen
    from reconciler.report.status.log import Event
    from reconciler.report.status.summary import FlowSummary

LogFormatOf = Literal["text", "json"]
FORMAT_VARIABLE = "ANABRANCH_LOG_FORMAT"
LogFormat = Annotated[
    LogFormatOf | None,
    typer.Option(
        "--log-format",
        envvar=FORMAT_VARIABLE,
        help="How each line on stderr is written: text, or a JSON object. Default: text on a terminal, else json.",
    ),
]

VERBOSE = "--verbose"
_ROOM = re.compile(r"[a-z][a-z0-9_]{0,99}(\.[a-z][a-z0-9_]{0,99}){0,9}")
_LEVELS: Mapping[str, Literal["DEBUG", "WARNING", "ERROR"]] = {"WARNING": "WARNING", "ERROR": "ERROR"}

_FLOWS_EVERY = 60.0
_LOOK_EVERY = 5.0
_SHOW_EVERY = 1.0
_SHOWN_PARTITIONS = 20


class EventLog:
    """Writes events to stderr as they come.

    Args:
        output: how.
    """

    def __init__(self, output: LogFormatOf) -> None:
        self._output = output

    def write(self, event: Event) -> None:
        """Write one event."""
        from reconciler.report.status.log import json_line, text_line

        if self._output == "json":
            sys.stderr.write(f"{json_line(event, time.time())}\n")
            sys.stderr.flush()
        else:
            common.stderr_console().print(text_line(event, time.time()))

    def say(self, text: str) -> None:
        """Write what has happened."""
        from reconciler.report.status.log import Event

        self.write(Event(text))

    def problem(self, problem: Problem, severity: Literal["error", "warning"]) -> None:
        """Write what is wrong."""
        from reconciler.report.status.log import of_problem

        self.write(of_problem(problem, "ERROR" if severity == "error" else "WARNING"))

    @property
    def is_in_place(self) -> bool:
        """Whether how flows do is shown in place."""
        return self._output == "text" and common.stderr_console().is_terminal


def opened(output: LogFormatOf | None) -> EventLog:
    """Have all that `common` prints go into a log from now on, also what `main` prints when the command has ended.

    Args:
        output: how; None for text on a terminal, and JSON elsewhere.
    """
    output = output or ("text" if common.stderr_console().is_terminal else "json")
    log = EventLog(output)
    _handler.output = output
    common.log_to(log)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGUSR1, _change_levels)
    return log


def _change_levels(*_: object) -> None:
    """Log debug lines of all rooms, or where that is so the levels that the command began with."""
    wanted = os.environ.get(starting.VERBOSE)
    tree = logging.getLogger(starting.TREE)
    if tree.level == logging.DEBUG and wanted != starting.ALL_ROOMS:
        starting.set_log_levels(wanted)
        common.say("debug lines as the command began with")
    else:
        starting.set_log_levels(starting.ALL_ROOMS)
        common.say("debug lines of all rooms from now on")


class LogHandler(logging.Handler):
    """Writes records of the loggers below `reconciler` to stderr, as events of the log that is open."""

    def __init__(self) -> None:
        super().__init__()
        self.output: LogFormatOf = "text"

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record; its logger's name stands before the message, without `reconciler.`."""
        from reconciler.report.status.log import Event

        level = _LEVELS.get(record.levelname, "DEBUG")
        name = record.name.removeprefix("reconciler.")
        try:
            text = f"{name}: {record.getMessage()}"
            EventLog(self.output).write(Event(text, level, fields={"logger": record.name}))
        except Exception:
            self.handleError(record)


_handler = LogHandler()


def _is_room(base: Path, room: str) -> bool:
    """Return whether a package or module below `reconciler` has this name; others are not even looked for."""
    if _ROOM.fullmatch(room) is None:
        return False
    path = base.joinpath(*room.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def set_levels(verbose: str | None) -> None:
    """Set the levels of all loggers of this process.

    Args:
        verbose: value of `--verbose`: rooms with commas between, or `all`; None for warnings alone.

    Raises:
        typer.BadParameter: a room does not exist.
    """
    base = Path(reconciler.__file__).parent
    for room in (verbose or "").split(","):
        if room.strip() not in ("", starting.ALL_ROOMS) and not _is_room(base, room.strip()):
            rooms = sorted(one.name for one in base.iterdir() if one.is_dir() and not one.name.startswith("_"))
            message = f"no room {room.strip()}; there are {', '.join(rooms)}"
            raise typer.BadParameter(message, param_hint=VERBOSE)
    starting.set_log_levels(verbose)


def begin_logging(verbose: str | None) -> None:
    """Begin to write records of loggers, with levels for this command and for the tasks that it starts.

    Args:
        verbose: as `set_levels` takes it.

    Raises:
        typer.BadParameter: a room does not exist.
    """
    set_levels(verbose)
    _handler.output = "text"
    logging.getLogger(starting.TREE).addHandler(_handler)
    if verbose:
        os.environ[starting.VERBOSE] = verbose
    else:
        os.environ.pop(starting.VERBOSE, None)


def end_logging() -> None:
    """Take back what `begin_logging` did: levels, the handler, the variable that processes inherit."""
    if signal.getsignal(signal.SIGUSR1) is _change_levels:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
    logging.getLogger(starting.TREE).removeHandler(_handler)
    starting.set_log_levels(None)
    os.environ.pop(starting.VERBOSE, None)


class FlowLog:
    """Shows how flows do: on a terminal continuously, in place; in a log when that changes, and once a minute.

    Use it as a context manager around the time in which they run.

    Args:
        log: where.
        flows: which ones.

    Attributes:
        newest: the newest status of each of their tasks.
    """

    def __init__(self, log: EventLog, flows: Sequence[Flow]) -> None:
        self._log = log
        self._flows = flows
        self.newest: Sequence[TaskStatus] = ()
        self._said: dict[str, tuple[object, float]] = {}
        self._troubled: dict[str, Mapping[tuple[str, int], object]] = {}
        self._screen: Screen | None = None

    def __enter__(self) -> FlowLog:
        if self._log.is_in_place:
            from reconciler.report.status.live import Screen

            self._screen = Screen(common.stderr_console())
            self._screen.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._screen is not None:
            self._screen.__exit__()
            self._screen = None

    @property
    def every(self) -> float:
        """Seconds between two updates."""
        return _LOOK_EVERY if self._screen is None else _SHOW_EVERY

    def show(self, statuses: Sequence[TaskStatus] | None = None, *, anew: bool = False) -> None:
        """Show how flows do.

        Args:
            statuses: the newest status of each of their tasks; None for those of before.
            anew: also where nothing has changed.
        """
        from reconciler.report.status.summary import status_lines, summarise

        self.newest = self.newest if statuses is None else statuses
        if not self.newest:
            return
        summaries = summarise(self._flows, self.newest, time.time())
        if self._screen is not None:
            lines = status_lines(summaries)
            more = len(lines) - _SHOWN_PARTITIONS
            shown = lines[:_SHOWN_PARTITIONS]
            self._screen.show([*shown, common.dim(f"… and {more} more")] if more > 0 else shown)
            return
        for summary in summaries:
            self._log_flow(summary, anew=anew)

    def _log_flow(self, summary: FlowSummary, *, anew: bool) -> None:
        from reconciler.report.status.log import of_flow, of_partition

        now = time.monotonic()
        key = (summary.state, summary.failing, summary.waiting, summary.parked, summary.paused, summary.silent_tasks)
        before, at = self._said.get(summary.name, (None, 0.0))
        if anew or key != before or now >= at + _FLOWS_EVERY:
            self._said[summary.name] = key, now
            self._log.write(of_flow(summary))
        told = self._troubled.get(summary.name, {})
        troubled = {(one.remote, one.partition): (one.state, one.reason) for one in summary.troubled}
        news = [one for one in summary.troubled if told.get(place := (one.remote, one.partition)) != troubled[place]]
        self._troubled[summary.name] = troubled
        for one in news[:_SHOWN_PARTITIONS]:
            self._log.write(of_partition(summary.name, one))
        if (more := len(news) - _SHOWN_PARTITIONS) > 0:
            self._log.say(f"flow {summary.name}: and {more:,} more partitions; `anabranch status --partitions` has all")
