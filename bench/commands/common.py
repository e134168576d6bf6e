"""What the bench's subcommands share: types of options, progress on stderr, and keeping a report.

Called by the subcommands alone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from bench.instruments.machine import facts
from bench.reports.index import index, newest

RESULTS = Path(__file__).parents[1] / "results"

_HISTORY = "history"
_INDEX = "README.md"

Report = Callable[[dict[str, str], str], str]


def new_command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, text: str
) -> argparse.ArgumentParser:
    """Add a subcommand with the options that every one has.

    Args:
        commands: where to.
        name: its name, and the last part of its report's file name.
        text: what it does, in a sentence.
    """
    command = commands.add_parser(
        name, help=text, description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    command.add_argument("--write", action="store_true", help="also keep the report in bench/results")
    return command


def publish(report: Report, name: str, write: bool) -> None:
    """Print a report, and keep it when asked for.

    Args:
        report: makes the text from facts about the machine and the date.
        name: the last part of the file's name.
        write: whether it is kept.
    """
    now = datetime.now(UTC)
    text = report(facts(), f"{now:%Y-%m-%d %H:%M} UTC")
    sys.stdout.write(text)
    if write:
        say(f"kept as {keep(text, f'{now:%Y-%m-%d}-{name}', RESULTS)}")
        write_index(RESULTS)


def keep(text: str, stem: str, folder: Path) -> Path:
    """Write a report under a name that no earlier one has, and return its path."""
    folder.mkdir(exist_ok=True)
    number, path = 1, folder / f"{stem}.md"
    while path.exists() or (folder / _HISTORY / path.name).exists():
        number += 1
        path = folder / f"{stem}-{number}.md"
    path.write_text(text, encoding="utf-8")
    return path


def write_index(folder: Path) -> None:
    """Write the index of the newest reports, one for each profile, and move the others to the history."""
    stems = [path.stem for path in folder.glob("*.md") if path.name != _INDEX]
    current = set(newest(stems).values())
    for stem in set(stems) - current:
        (folder / _HISTORY).mkdir(exist_ok=True)
        (folder / f"{stem}.md").rename(folder / _HISTORY / f"{stem}.md")
    (folder / _INDEX).write_text(index_of(folder), encoding="utf-8")


def index_of(folder: Path) -> str:
    """Return the index of the reports in a folder."""
    paths = (path for path in folder.glob("*.md") if path.name != _INDEX)
    return index({path.stem: path.read_text(encoding="utf-8") for path in paths})


def count(text: str) -> int:
    """Return a positive number; `4_000_000` is one."""
    number = int(text)
    if number < 1:
        message = f"expected at least 1, found {number}"
        raise argparse.ArgumentTypeError(message)
    return number


def counts(text: str) -> list[int]:
    """Return the numbers of a comma list, each once."""
    return list(dict.fromkeys(count(piece) for piece in text.split(",")))


def say(line: str) -> None:
    """Tell about progress."""
    sys.stderr.write(line + "\n")
