"""Options whose value may be left out (`--watch [SECONDS]`, `--wait [DURATION]`, `--verbose[=ROOMS]`); names of flows.

Typer has no such options.

`main` gives each its value before typer reads the command line: what follows one may be a file instead.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from reconciler.cli.environments import OPTION as ENVIRONMENT
from reconciler.cli.log import VERBOSE
from reconciler.cli.patience import COMMANDS, FOR_EVER, OPTION, is_duration
from reconciler.starting import ALL_ROOMS

WATCH = "--watch"
WATCH_SHORT = "-w"
WATCH_SECONDS = 2.0
_NAMES_A_FLOW = ("--flow", "-f", "flow")
_FLOW_AND_NAME = "--flow="
# `status` shows a flow as `a → b`; its name is `a-b`, unless it has another.
_ROUTE = re.compile(r"\s*(?:->|→)\s*")


def with_general_first(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the options of `anabranch` itself, `--verbose` and `--env` with their values, and the rest of a line.

    Each command has them in this way; users write them anywhere.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    general: list[str] = []
    rest: list[str] = []
    given = iter(arguments[:end])
    for one in given:
        if one == VERBOSE:
            general.append(f"{VERBOSE}={ALL_ROOMS}")
        elif one == ENVIRONMENT:
            # Without a value typer's own message is as good as ours.
            general += [one, *(value for value in [next(given, None)] if value is not None)]
        elif one.startswith((f"{VERBOSE}=", f"{ENVIRONMENT}=")):
            general.append(one)
        else:
            rest.append(one)
    return general, [*rest, *arguments[end:]]


def with_values(arguments: Sequence[str]) -> list[str]:
    """Return a command line in which every `--watch` has its seconds, and `--wait` of what runs on its duration.

    A flow may be named as it is shown, `a → b` or `a->b`.
    """
    waits = arguments[:1] and arguments[0] in COMMANDS
    told: list[str] = []
    for number, argument in enumerate(arguments):
        if argument == "--":
            return [*told, *arguments[number:]]
        following = arguments[number + 1] if number + 1 < len(arguments) else ""
        before = arguments[number - 1] if number else ""
        if before in _NAMES_A_FLOW or argument.startswith(_FLOW_AND_NAME):
            told.append(_ROUTE.sub("-", argument))
        elif argument in (WATCH, WATCH_SHORT) and not _is_number(following):
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
