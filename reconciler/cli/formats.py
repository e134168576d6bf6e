"""Formats of output: the values of `--format` of all commands, and how values are written in those for programs.

A further format for programs is one entry in `DataFormat` and `_WRITERS`: every command that prints JSON has it then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, get_args

from reconciler.model.base.text import json_text

DataFormat = Literal["json", "yaml"]
"""Formats for programs: all write the same values."""
TextOrData = Literal["text", DataFormat]
TableFormat = Literal["text", "csv", DataFormat]
PlanFormat = Literal["text", DataFormat, "markdown"]
PlanPicture = Literal["mermaid", "svg"]
PlanFormatOrPicture = Literal[PlanFormat, PlanPicture]
CommandsFormat = Literal["text", DataFormat, "commands"]

FORMAT = ("--format", "-o", "--output")
"""The names of the option for the format of output; its callback is `as_written`."""


class _Writer(NamedTuple):
    """How a format writes a value: alone, and as one of many."""

    alone: Callable[[object], str]
    of_many: Callable[[object], str]


def _yaml(value: object) -> str:
    # Reading and writing YAML takes long to import.
    from reconciler.declare.rewrite import yaml_text

    return yaml_text(value)


_WRITERS: Mapping[str, _Writer] = {
    "json": _Writer(lambda value: f"{json_text(value, indent=2)}\n", lambda value: f"{json_text(value)}\n"),
    "yaml": _Writer(_yaml, lambda value: f"---\n{_yaml(value)}"),
}
_chosen = ["json"]


def as_written(output: str) -> str:
    """Note the format that `--format` names, and return it; `json` stands for all formats for programs."""
    is_data = output in get_args(DataFormat)
    _chosen[0] = output if is_data else "json"
    return "json" if is_data else output


def write_as_json() -> None:
    """Have values written as JSON from now on."""
    _chosen[0] = "json"


def print_json(value: object) -> None:
    """Write one value to stdout, in the format for programs that was chosen."""
    sys.stdout.write(_WRITERS[_chosen[0]].alone(value))


def print_in_line(value: object) -> None:
    """Write one value of many to stdout: as JSON in one line, or as a YAML document."""
    sys.stdout.write(_WRITERS[_chosen[0]].of_many(value))
    sys.stdout.flush()
