"""`python -m bench COMMAND`: measure, and print a report to stdout; progress goes to stderr."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from bench.commands import control, crowd, flows, groups, index, latency, padding, race, service, soak, verify
from reconciler.model.base.errors import AnabranchError
from reconciler.starting import set_log_levels

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line, by default the process's own; brokers and their gigabytes go away however it ends."""
    asked = parser().parse_args(arguments)
    set_log_levels(None)
    signal.signal(signal.SIGTERM, _end)
    try:
        asked.run(asked)
    except AnabranchError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def parser() -> argparse.ArgumentParser:
    """Return the command line."""
    made = argparse.ArgumentParser(prog="python -m bench", description="Measure Anabranch on this machine.")
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    for command in (race, latency, soak, padding, crowd, flows, control, groups, service, verify, index):
        command.add(commands)
    return made


def _end(_number: int, _frame: object) -> None:
    # As Ctrl-C does, so that everything on the way is cleaned up.
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
