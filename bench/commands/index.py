"""`python -m bench index`: write the index of the reports anew, and move older reports to the history."""

from __future__ import annotations

import argparse

from bench.commands.common import RESULTS, write_index


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    text = "write bench/results/README.md anew, and move older reports to bench/results/history"
    command = commands.add_parser("index", help=text, description=text)
    command.set_defaults(run=_run)


def _run(_asked: argparse.Namespace) -> None:
    write_index(RESULTS)
