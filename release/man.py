"""Writes the manual page `anabranch.1` anew, from the help of all commands: `python -m release man`.

The wheel installs it below `share/man`, where `man` looks beside the command. Roff as of man(7).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from reconciler.cli.helping import GROUPS
from reconciler.cli.main import app, command_line

PAGE = Path(__file__).with_name("anabranch.1")
_ABOUT = "keep Kafka clusters in step with declared topologies"


def make(page: Path = PAGE) -> None:
    """Write the page."""
    page.write_text(text(), encoding="utf-8")


def text() -> str:
    """Return the page."""
    # Help is as wide as the terminal; the page has no width.
    os.environ.setdefault("COLUMNS", "80")
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    commands = command_line()
    yield '.TH ANABRANCH 1 "" "Anabranch" "User Commands"'
    yield ".SH NAME"
    yield f"anabranch \\- {_roff(_ABOUT)}"
    yield ".SH SYNOPSIS"
    yield ".B anabranch"
    yield "[OPTIONS] COMMAND [ARGS]..."
    yield ".SH DESCRIPTION"
    yield _roff(str(app.info.help))
    yield ".SH OPTIONS"
    yield from _options(commands, "anabranch")
    for group, names in GROUPS.items():
        yield f'.SH "{group.upper()}"'
        for name in names:
            yield from _command(commands.commands[name], f"anabranch {name}")
    yield '.SH "SEE ALSO"'
    yield _roff("anabranch docs prints the documentation.")


def _command(command: Any, path: str) -> Iterator[str]:
    below = getattr(command, "commands", {})
    if not below:
        context = command.context_class(command, info_name=path)
        yield f'.SS "{_roff(" ".join([path, *command.collect_usage_pieces(context)]))}"'
    else:
        yield f'.SS "{_roff(path)}"'
    for number, paragraph in enumerate((command.help or "").split("\n\n")):
        if number:
            yield ".PP"
        yield _roff(" ".join(paragraph.split()))
    yield from _options(command, path)
    for name, one in below.items():
        yield from _command(one, f"{path} {name}")


def _options(command: Any, path: str) -> Iterator[str]:
    context = command.context_class(command, info_name=path)
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None:
            names, what = record
            yield ".TP"
            yield f"\\fB{_roff(names)}\\fR"
            yield _roff(" ".join(what.split())) or "\\&"


def _roff(words: str) -> str:
    """Return text as roff has it: no backslash, hyphen or first character of it means anything else."""
    escaped = words.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
