"""`python -m bench service`: scrapes of many partitions, and requests while tasks report."""

from __future__ import annotations

import argparse

from bench.commands.common import count, new_command, publish, say
from bench.measures.service import service, service_report

_TEXT = "measure scrapes of anabranch metrics, and requests to anabranch serve"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    command = new_command(commands, "service", _TEXT)
    command.add_argument("--partitions", type=count, default=10_000, help="partitions that report while it is scraped")
    command.add_argument("--reporting", type=count, default=500, help="partitions that report while requests are made")
    command.add_argument("--rate", type=count, default=200, help="requests in a second")
    command.set_defaults(run=_run)


def _run(asked: argparse.Namespace) -> None:
    scraped, answered = service(asked.partitions, asked.reporting, asked.rate, say)
    publish(lambda machine, date: service_report(scraped, answered, machine, date), "service", asked.write)
