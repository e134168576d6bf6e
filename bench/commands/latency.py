"""`python -m bench latency`: what replication adds to the way of a record from producer to consumer."""

from __future__ import annotations

import argparse

from bench.commands.common import count, new_command, publish, say
from bench.competitors.mm2 import TUNINGS, MirrorMaker2
from bench.competitors.ours import Anabranch
from bench.instruments.probe import Stream
from bench.measures.latency import Peer, Setting, latency
from bench.reports.latency import latency_report

_TEXT = "measure what Anabranch and MirrorMaker 2 add to the way of a record from producer to consumer"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    command = new_command(commands, "latency", _TEXT)
    command.add_argument("--rate", type=count, default=1000, help="records a second")
    command.add_argument("--size", type=count, default=250, help="bytes of a value")
    command.add_argument("--partitions", type=count, default=8, help="partitions of the topic")
    command.add_argument("--seconds", type=count, default=600, help="length of what counts, for each contestant")
    command.add_argument("--warm-up", type=count, default=60, help="seconds before it that do not count")
    command.add_argument("--runs", type=count, default=3, help="how often")
    command.add_argument("--tasks", type=count, default=1, help="Anabranch's tasks")
    command.add_argument("--round", type=count, default=300, help="seconds of a round of Anabranch's tasks")
    command.add_argument("--linger", action="append", default=[], help="a further row: flows with this linger (15ms)")
    command.add_argument("--mm2-tasks", type=count, default=1, help="MirrorMaker 2's tasks")
    command.add_argument("--tuning", action="append", choices=TUNINGS, help="a row of MirrorMaker 2's; else all")
    command.add_argument("--mm2", action=argparse.BooleanOptionalAction, default=True, help="with MirrorMaker 2")
    command.set_defaults(run=_run)


def _run(asked: argparse.Namespace) -> None:
    # The first row is what bars are held against: nothing is declared there.
    options = ("--round", str(asked.round))
    peers: list[Peer] = [Anabranch(asked.tasks, options, linger=linger) for linger in (None, *asked.linger)]
    if asked.mm2:
        labels = asked.tuning or TUNINGS
        peers += [MirrorMaker2(asked.mm2_tasks, tuning=TUNINGS[label], label=label) for label in labels]
    setting = Setting(Stream(asked.rate, asked.size, asked.partitions), asked.seconds, asked.warm_up)
    result = latency(setting, peers, asked.runs, say)
    publish(lambda machine, date: latency_report(result, machine, date), "latency", asked.write)
