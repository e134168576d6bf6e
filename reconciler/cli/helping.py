"""How `--help` reads: commands in groups with short summaries, the terminal's whole width, plain words for values.

`main` calls it for the whole tree of commands; typer has no settings for this.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperGroup

GROUPS: Mapping[str, Mapping[str, str]] = {
    "Declare": {
        "init": "Write a first topology file",
        "validate": "Check topology files, show all problems",
        "fmt": "Write topology files in one style",
        "graph": "Draw clusters and flows",
        "explain": "Show what counts, and what a code means",
        "ci": "Write pipelines for GitHub or GitLab",
        "schema": "Print a JSON Schema for editors",
    },
    "Change": {
        "plan": "Show what apply would do",
        "apply": "Make clusters what the files declare",
        "drift": "Show what others changed since the apply",
        "adopt": "Take over topics that stand where copies go",
        "destroy": "Delete the copies of this topology",
        "recreate": "Delete single copies, and copy them again",
    },
    "Run": {
        "replicate": "Copy records, until stopped",
        "reconcile": "Let copies follow, without copying records",
        "pause": "Pause flows, topics or partitions",
        "resume": "Resume what was paused",
        "restart": "Try parked partitions again at once",
        "demo": "Show it all here, on real brokers",
        "sandbox": "Keep clusters here to try it all on",
    },
    "Look": {
        "status": "Show whether flows run, and how fast",
        "lag": "List partitions, the worst first",
        "flows": "List the flows of the files",
        "topics": "List what is copied, the worst first",
        "groups": "List groups that are taken along",
        "describe": "Show all about one flow or topic",
        "deployments": "Show what this machine runs",
        "render": "Write manifests of Kubernetes",
        "metrics": "Serve metrics for Prometheus",
        "serve": "Serve a page, and status over HTTP",
        "events": "List applies, pauses, failovers on record",
        "verify": "Compare copies with originals",
        "doctor": "Show what stands against replicating",
        "docs": "Print a page of the documentation",
        "version": "Print the version",
    },
    "Come from others": {
        "convert": "Make a topology file of their files",
        "mirror-maker2": "Run an mm2.properties as it is",
        "mirror-maker": "Run what MirrorMaker 1 is started with",
        "connect-standalone": "Run connectors of a single worker",
        "connect-distributed": "Run a worker with its REST paths",
        "release": "Hand a flow back to MirrorMaker 2",
    },
    "Move consumers": {
        "failover": "Move consumers to a flow's target",
        "failback": "Take them back to its source",
        "offsets": "Read, move and translate offsets",
    },
}
"""By group and command the summary, of 45 letters at most."""

BELOW: Mapping[str, Mapping[str, str]] = {
    "ci": {
        "init": "Write pipelines that plan and apply",
    },
    "describe": {
        "flow": "Show one flow",
        "topic": "Show one topic in all flows",
    },
    "offsets": {
        "read": "Print committed offsets",
        "write": "Move one group, or one flow's position",
        "export": "Write offsets to a file",
        "import": "Write the offsets of a file",
        "translate": "Show where an offset stands elsewhere",
    },
    "sandbox": {
        "up": "Start clusters that stay",
        "down": "Take them down, with all they hold",
    },
}
"""Likewise by command the summaries of what is below it."""

_PLAIN = {"<str>": "TEXT", "<path>": "PATH", "<float>": "NUMBER", "<int>": "NUMBER", "<float range>": "NUMBER"}
_PLAIN |= {"<int range>": "NUMBER", "<list[Path]>": "PATH", "<list[str]>": "TEXT", "<list[int]>": "NUMBER"}


class Grouped(TyperGroup):
    """The group of all commands, listed in `GROUPS`."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group."""
        width = max(len(name) for names in GROUPS.values() for name in names)
        for group, names in GROUPS.items():
            with formatter.section(group):
                formatter.write_dl([(f"{name:<{width}}", summary) for name, summary in names.items()])


def settings() -> dict[str, Any]:
    """Return typer's settings of the context: help for `-h` as well, as wide as the terminal."""
    return {"help_option_names": ["-h", "--help"], "max_content_width": shutil.get_terminal_size().columns}


def group(about: str) -> typer.Typer:
    """Return a command that has commands below it.

    Args:
        about: what they do, as its help has it.
    """
    return typer.Typer(
        help=about,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=settings(),
    )


def readable(command: Any) -> Any:
    """Return a command whose help, and that of all below it, reads well."""
    for name, below in getattr(command, "commands", {}).items():
        below.short_help = BELOW[command.name][name]
        readable(below)
    for parameter in command.params:
        _simplify(parameter)
    return command


def _simplify(parameter: Any) -> None:
    """Have a parameter show plain words instead of Python types and inequalities."""
    if parameter.param_type_name == "argument":
        name = parameter.display_name_raw.removesuffix("...").strip("[]")
        many = "..." if parameter.nargs != 1 else ""
        usage = f"{name}{many}" if parameter.required else f"[{name}]{many}"
        parameter._usage_display_name = lambda: usage
        parameter._rich_display_name = lambda: f"{name}{many}"
        parameter.display_type_rich = lambda ctx: None
        # Whether it is required is in the usage.
        parameter._extract_default_help_str = lambda ctx: None
    else:
        told = parameter.display_type_rich
        parameter.display_type_rich = lambda ctx: _PLAIN.get(found := told(ctx=ctx), found)
    least, most = getattr(parameter, "min", None), getattr(parameter, "max", None)
    parameter._get_number_range_help_str = lambda: _within(least, most)


def _within(least: float | None, most: float | None) -> str | None:
    """Return in words between which numbers one may be; None where there is no bound."""
    if most is not None:
        return f"{least or 0:g} to {most:g}"
    return f"at least {least:g}" if least else None
