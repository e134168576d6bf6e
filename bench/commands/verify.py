"""`python -m bench verify`: comparing a copy with its original, beside two consumers that only read them."""

from __future__ import annotations

import argparse

from bench.commands.common import count, new_command, publish, say
from bench.measures.verify import verify, verify_report
from bench.workload.load import CODECS, Load

_TEXT = "measure how long it takes to compare a copy with its original, beside two console consumers"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    command = new_command(commands, "verify", _TEXT)
    command.add_argument("--records", type=count, default=8_000_000, help="records, all partitions together")
    command.add_argument("--size", type=count, default=250, help="bytes of a record")
    command.add_argument("--partitions", type=count, default=8, help="partitions")
    command.add_argument("--codec", choices=CODECS, default="none", help="of the producers")
    command.add_argument("--runs", type=count, default=3, help="how often both are read")
    command.set_defaults(run=_run)


def _run(asked: argparse.Namespace) -> None:
    load = Load(asked.records, asked.size, asked.partitions, asked.codec)
    found = verify(load, asked.runs, say)
    publish(lambda machine, date: verify_report(found, machine, date), "verify", asked.write)
