"""Options whose value may be left out: `--watch [SECONDS]`, `--wait [DURATION]`, `--verbose[=ROOMS]`.

Typer has no such options.

`main` gives each its value before typer reads the command line: what follows one may be a file instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from reconciler.cli.log import VERBOSE
from reconciler.cli.patience import COMMANDS, FOR_EVER, OPTION, is_duration
from reconciler.starting import ALL_ROOMS

WATCH = "--watch"
WATCH_SHORT = "-w"
WATCH_SECONDS = 2.0


def with_verbose_first(arguments: Sequence[str]) -> list[str]:
    """Return a command line in which every `--verbose` stands before the command, with its value.

    It is an option of `anabranch` itself, so that each command has it; users write it anywhere.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    found = [one for one in arguments[:end] if one == VERBOSE or one.startswith(f"{VERBOSE}=")]
    rest = [one for one in arguments[:end] if one not in found]
    values = [f"{VERBOSE}={ALL_ROOMS}" if one == VERBOSE else one for one in found]
    return [*values, *rest, *arguments[end:]]


def with_values(arguments: Sequence[str]) -> list[str]:
    """Return a command line in which every `--watch` has its seconds, and `--wait` of what runs on its duration."""
    waits = arguments[:1] and arguments[0] in COMMANDS
    told: list[str] = []
    for number, argument in enumerate(arguments):
        if argument == "--":
            return [*told, *arguments[number:]]
        following = arguments[number + 1] if number + 1 < len(arguments) else ""
        if argument in (WATCH, WATCH_SHORT) and not _is_number(following):
            told.append(f"{WATCH}={WATCH_SECONDS}")
        elif waits and argument == OPTION and not is_duration(following):
            told.append(f"{OPTION}={FOR_EVER}")
        else:
            told.append(argument)
    return told


def _is_number(following: str) -> bool:
    try:
        return math.isfinite(float(following))
    except ValueError:
        return False
