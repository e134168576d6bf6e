"""`python -m bench groups`: rounds that take many consumer groups along."""

from __future__ import annotations

import argparse

from bench.commands.common import count, new_command, publish, say
from bench.measures.groups import groups, groups_report

_TEXT = "measure how long a round takes that takes many consumer groups along"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    command = new_command(commands, "groups", _TEXT)
    command.add_argument("--groups", type=count, default=1000, help="consumer groups of the source")
    command.add_argument("--partitions", type=count, default=100, help="partitions in which each has an offset")
    command.set_defaults(run=_run)


def _run(asked: argparse.Namespace) -> None:
    found = {}
    for offsets in ("identical", "translated"):
        say(f"{offsets} offsets")
        found[offsets] = groups(asked.groups, asked.partitions, offsets, say)
    publish(
        lambda machine, date: groups_report(asked.groups, asked.partitions, found, machine, date), "groups", asked.write
    )
