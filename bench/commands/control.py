"""`python -m bench control`: a cluster of many topics and ACLs, planned and applied."""

from __future__ import annotations

import argparse

from bench.commands.common import count, new_command, publish, say
from bench.measures.control import control, control_report

_TEXT = "measure how long plan and apply take for many topics and ACLs, and how many requests they send"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    command = new_command(commands, "control", _TEXT)
    command.add_argument("--topics", type=count, default=1000, help="topics of the source")
    command.add_argument("--partitions", type=count, default=1, help="partitions of each")
    command.add_argument("--acls", type=count, default=3000, help="ACLs of the source")
    command.set_defaults(run=_run)


def _run(asked: argparse.Namespace) -> None:
    sizes = asked.topics, asked.partitions, asked.acls
    found = control(*sizes, say)
    publish(lambda machine, date: control_report(*sizes, found, machine, date), "control", asked.write)
