"""`python -m bench race`: run a race and print the report to stdout; progress goes to stderr."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.competitor import Competitor
from bench.load import CODECS, SMALLEST, Load
from bench.machine import facts
from bench.mm2 import MirrorMaker2
from bench.ours import Anabranch
from bench.race import race
from bench.report import report
from reconciler.model.errors import AnabranchError

_QUICK_RECORDS = 300_000
_INTERRUPTED = 130
_RESULTS = Path(__file__).with_name("results")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line, by default the process's own; brokers and their gigabytes go away however it ends."""
    parser = _parser()
    asked = parser.parse_args(arguments)
    if asked.size < SMALLEST:
        parser.error(f"--size: expected at least {SMALLEST}, found {asked.size}")
    signal.signal(signal.SIGTERM, _end)
    try:
        _race(asked)
    except AnabranchError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure Anabranch on this machine.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "race",
        help="Anabranch and MirrorMaker 2 replicate the same topic in turn",
        description="Let Anabranch and MirrorMaker 2 replicate the same topic in turn; print a report in Markdown.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    command.add_argument("--records", type=_count, default=4_000_000, help="records in the topic")
    command.add_argument("--size", type=_count, default=250, help="bytes of a record, key and value")
    command.add_argument("--partitions", type=_count, default=8, help="partitions of the topic")
    command.add_argument("--codec", choices=CODECS, default="none", help="compression of the topic")
    command.add_argument("--batch-size", type=_count, default=256 * 1024, help="bytes to which a batch is filled")
    command.add_argument("--runs", type=_count, default=3, help="starts of each competitor")
    command.add_argument("--tasks", type=_counts, default="1,2", help="Anabranch's tasks, one competitor for each")
    command.add_argument("--mm2-tasks", type=_counts, default="1,2", help="the same for MirrorMaker 2")
    command.add_argument("--mm2-exactly-once", action="store_true", help="add MirrorMaker 2's exactly-once mode")
    command.add_argument("--quick", action="store_true", help="a small topic, one run, one task: show that it works")
    command.add_argument("--write", action="store_true", help="also keep the report in bench/results")
    return parser


def _race(asked: argparse.Namespace) -> None:
    if asked.quick:
        asked.records, asked.runs, asked.tasks, asked.mm2_tasks = _QUICK_RECORDS, 1, [1], [1]
    competitors: list[Competitor] = [Anabranch(tasks) for tasks in asked.tasks]
    modes = (False, True) if asked.mm2_exactly_once else (False,)
    competitors += [MirrorMaker2(tasks, exactly_once) for exactly_once in modes for tasks in asked.mm2_tasks]
    load = Load(asked.records, asked.size, asked.partitions, asked.codec, asked.batch_size)
    now = datetime.now(UTC)
    text = report(race(load, competitors, asked.runs, _say), facts(), f"{now:%Y-%m-%d %H:%M} UTC")
    sys.stdout.write(text)
    if asked.write:
        _keep(text, f"{now:%Y-%m-%d}")


def _keep(text: str, date: str) -> None:
    """Write a report under a name that no earlier one has."""
    _RESULTS.mkdir(exist_ok=True)
    number, path = 1, _RESULTS / f"{date}-race.md"
    while path.exists():
        number += 1
        path = _RESULTS / f"{date}-race-{number}.md"
    path.write_text(text, encoding="utf-8")
    _say(f"kept as {path}")


def _count(text: str) -> int:
    """Return a positive number; `4_000_000` is one."""
    number = int(text)
    if number < 1:
        message = f"expected at least 1, found {number}"
        raise argparse.ArgumentTypeError(message)
    return number


def _counts(text: str) -> list[int]:
    """Return the numbers of a comma list, each once."""
    return list(dict.fromkeys(_count(piece) for piece in text.split(",")))


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")


def _end(_number: int, _frame: object) -> None:
    # As Ctrl-C does, so that everything on the way is cleaned up.
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
