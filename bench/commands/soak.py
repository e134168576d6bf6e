"""`python -m bench soak`: whether a worker's memory stays flat."""

from __future__ import annotations

import argparse

from bench.commands.common import count, new_command, publish, say
from bench.measures.soak import Wear, soak
from bench.reports.soak import soak_report

_TEXT = "work Anabranch for an hour and look whether its memory stays flat"
_MB = 10**6


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    command = new_command(commands, "soak", _TEXT)
    command.add_argument("--seconds", type=count, default=3600, help="how long, after the backlog")
    command.add_argument("--warm-up", type=count, default=300, help="seconds of it that do not count")
    command.add_argument("--backlog-mb", type=count, default=2000, help="MB that wait when it starts")
    command.add_argument("--rate-mb", type=count, default=5, help="MB a second afterwards")
    command.add_argument("--burst-mb", type=count, default=500, help="MB of a burst")
    command.add_argument("--burst-every", type=count, default=600, help="seconds between two bursts")
    command.add_argument("--partitions", type=count, default=8, help="partitions of the topic")
    command.add_argument("--round", type=count, default=300, help="seconds of a round of Anabranch's tasks")
    command.set_defaults(run=_run)


def _run(asked: argparse.Namespace) -> None:
    wear = Wear(
        asked.seconds,
        asked.warm_up,
        asked.backlog_mb * _MB,
        asked.rate_mb * _MB,
        asked.burst_mb * _MB,
        asked.burst_every,
        asked.partitions,
    )
    result = soak(wear, ("--round", str(asked.round)), say)
    publish(lambda machine, date: soak_report(result, machine, date), "soak", asked.write)
