"""`python -m bench crowd`: thousands of partitions that are idle most of the time."""

from __future__ import annotations

import argparse

from bench.commands.common import count, new_command, publish, say
from bench.instruments.probe import Stream
from bench.measures.crowd import crowd, crowd_report
from bench.measures.latency import Setting

_TEXT = "measure how soon thousands of mostly idle partitions run, what they cost, and how late a record is"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    command = new_command(commands, "crowd", _TEXT)
    command.add_argument("--partitions", type=count, default=2000, help="partitions of the topic")
    command.add_argument("--rate", type=count, default=20, help="records a second, all partitions together")
    command.add_argument("--seconds", type=count, default=60, help="length of each window")
    command.add_argument("--warm-up", type=count, default=15, help="seconds before each that do not count")
    command.add_argument("--runs", type=count, default=3, help="how often")
    command.add_argument("--tasks", type=count, default=1, help="Anabranch's tasks")
    command.set_defaults(run=_run)


def _run(asked: argparse.Namespace) -> None:
    stream = Stream(asked.rate, partitions=asked.partitions)
    setting = Setting(stream, asked.seconds, asked.warm_up)
    found = crowd(setting, asked.tasks, asked.runs, say)
    publish(lambda machine, date: crowd_report(setting, found, machine, date), "crowd", asked.write)
