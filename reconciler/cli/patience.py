"""`--wait[=DURATION]`: commands that run until they are stopped wait for clusters that do not answer."""

from __future__ import annotations

import math
import re
from typing import Annotated

import typer

OPTION = "--wait"
FOR_EVER = "forever"
COMMANDS = ("replicate", "reconcile")
"""Those whose `--wait` may stand alone."""

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_WRITTEN = re.compile(r"(\d+(?:\.\d+)?) ?([a-z]*)")

Wait = Annotated[
    str | None,
    typer.Option(
        OPTION,
        metavar="[DURATION]",
        help="Wait for clusters that do not answer, for so long (30s, 5min) or for ever, instead of ending with 6.",
    ),
]


def is_duration(written: str) -> bool:
    """Return whether a text is a duration."""
    found = _WRITTEN.fullmatch(written)
    return written == FOR_EVER or (found is not None and found[2] in _UNITS)


def seconds_of(wait: str | None, option: str = OPTION) -> float:
    """Return the seconds that `--wait` names: 0 where it is not given, infinity for `forever`.

    Args:
        wait: its value.
        option: for the error: another option with a duration.

    Raises:
        typer.BadParameter: it is no duration.
    """
    if wait is None:
        return 0.0
    if not is_duration(wait):
        message = f"expected a duration such as 30s, 5min or 1h, or nothing for ever; found {wait}"
        raise typer.BadParameter(message, param_hint=option)
    found = _WRITTEN.fullmatch(wait)
    return math.inf if found is None else float(found[1]) * _UNITS[found[2]]
