"""`python -m bench padding`: how long the copy of a log that starts far from 0 takes to start there as well."""

from __future__ import annotations

import argparse

from bench.commands.common import count, new_command, publish, say
from bench.measures.padding import padding, padding_report
from bench.workload.load import Load

_TEXT = "measure how long an empty remote partition takes to begin where a trimmed source does"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    command = new_command(commands, "padding", _TEXT)
    command.add_argument("--offset", type=count, default=50_000_000, help="where the source's log starts")
    command.add_argument("--partitions", type=count, default=1, help="partitions, each of which starts there")
    command.add_argument("--records", type=count, default=10_000, help="records from there on, all partitions together")
    command.add_argument("--runs", type=count, default=3, help="how often")
    command.set_defaults(run=_run)


def _run(asked: argparse.Namespace) -> None:
    load = Load(asked.records, partitions=asked.partitions, alone=True)
    result = padding(asked.offset, load, asked.runs, say)
    publish(lambda machine, date: padding_report(result, machine, date), "padding", asked.write)
