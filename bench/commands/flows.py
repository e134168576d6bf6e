"""`python -m bench flows`: many flows in one `replicate`."""

from __future__ import annotations

import argparse

from bench.commands.common import count, new_command, publish, say
from bench.measures.flows import Wanted, many_flows, many_flows_report

_TEXT = "measure how soon many flows of one process copy, and what they cost while nothing comes in"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    command = new_command(commands, "flows", _TEXT)
    command.add_argument("--flows", type=count, default=100, help="how many, each with a topic of its own")
    command.add_argument("--partitions", type=count, default=1, help="of each topic")
    command.add_argument("--nodes", type=count, default=1, help="of each cluster; one takes some 5,000 partitions")
    command.add_argument("--groups", action="store_true", help="have them translate offsets of consumer groups, too")
    command.add_argument("--seconds", type=count, default=60, help="for how long nothing comes in")
    command.add_argument("--warm-up", type=count, default=30, help="seconds before that do not count")
    command.add_argument("--runs", type=count, default=3, help="how often")
    command.set_defaults(run=_run)


def _run(asked: argparse.Namespace) -> None:
    wanted = Wanted(asked.flows, asked.partitions, asked.nodes, asked.groups, asked.seconds, asked.warm_up)
    found = many_flows(wanted, asked.runs, say)
    publish(lambda machine, date: many_flows_report(wanted, found, machine, date), "flows", asked.write)
