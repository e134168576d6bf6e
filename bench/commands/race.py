"""`python -m bench race`: Anabranch, MirrorMaker 2 and a Kafka follower replicate the same topic in turn."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from bench.commands.common import count, counts, new_command, publish, say
from bench.competitors.base import Competitor
from bench.competitors.follower import Follower
from bench.competitors.mm2 import MirrorMaker2
from bench.competitors.ours import Anabranch
from bench.instruments.line import leave_network
from bench.measures.race import race
from bench.reports.race import report
from bench.workload.load import CODECS, SMALLEST, Load
from bench.workload.profiles import PROFILES, Profile
from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.flow import OFFSETS_MODES, OffsetsMode

_QUICK_RECORDS = 300_000
_TEXT = "let Anabranch, MirrorMaker 2 and a Kafka follower replicate the same topic in turn"
_FROM_PROFILE = "default: the profile's"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    command = new_command(commands, "race", _TEXT)
    command.add_argument(
        "--profile", type=_profiles, default="plain250", help=f"a comma list of {', '.join(PROFILES)}, or all"
    )
    command.add_argument("--records", type=count, help=f"records in the topic; {_FROM_PROFILE}")
    command.add_argument("--size", type=_size, help=f"bytes of a record, key and value; {_FROM_PROFILE}")
    command.add_argument("--partitions", type=count, help=f"partitions of the topic; {_FROM_PROFILE}")
    command.add_argument("--codec", choices=CODECS, help=f"compression of the topic; {_FROM_PROFILE}")
    command.add_argument("--batch-size", type=count, help=f"bytes to which a batch is filled; {_FROM_PROFILE}")
    command.add_argument("--odd", action="store_true", help="some records without key or value, some with headers")
    command.add_argument("--runs", type=count, default=3, help="starts of each competitor")
    command.add_argument("--tasks", type=counts, default="1,2", help="Anabranch's tasks, one competitor for each")
    command.add_argument("--offsets", choices=OFFSETS_MODES, default="auto", help="how Anabranch's copy has them")
    command.add_argument("--executors", action="store_true", help="run Anabranch's tasks on a standalone Spark cluster")
    command.add_argument("--mm2-tasks", type=counts, default="2", help="the same for MirrorMaker 2")
    for name, text in (
        ("--mm2", "MirrorMaker 2"),
        ("--mm2-exactly-once", "MirrorMaker 2 in its exactly-once mode"),
        ("--follower", "a Kafka follower"),
    ):
        command.add_argument(name, action=argparse.BooleanOptionalAction, default=True, help=f"with {text}")
    command.add_argument(
        "--quick", action="store_true", help="a small topic, one run, one task of Anabranch: show that it works"
    )
    command.set_defaults(run=_run)


def _run(asked: argparse.Namespace) -> None:
    if asked.quick:
        asked.records, asked.runs, asked.tasks = asked.records or _QUICK_RECORDS, 1, [1]
    try:
        profiles = [_adapted(profile, asked) for profile in asked.profile]
    except ValueError as error:
        sys.exit(f"--profile and its options: {error}")
    if any(profile.line for profile in profiles):
        try:
            leave_network()
        except AnabranchError as error:
            sys.exit(str(error))
    failures = [profile.name for profile in profiles if not _raced(profile, asked)]
    if failures:
        sys.exit(f"no result: {', '.join(failures)}")


def _raced(profile: Profile, asked: argparse.Namespace) -> bool:
    """Race and publish; a profile that fails leaves the next ones their turn, as they take long."""
    try:
        result = race(profile, competitors(profile, asked), asked.runs, say)
    except AnabranchError as error:
        say(str(error))
        return False
    kind = ("-translated" if asked.offsets == "translated" else "") + ("-executors" if asked.executors else "")
    publish(lambda machine, date: report([result], machine, date), f"race-{profile.name}{kind}", asked.write)
    return True


def competitors(profile: Profile, asked: argparse.Namespace) -> list[Competitor]:
    """Return who takes part in a profile's race."""
    offsets: OffsetsMode = "translated" if profile.compacted else asked.offsets
    found: list[Competitor] = [Anabranch(tasks, offsets=offsets, executors=asked.executors) for tasks in asked.tasks]
    modes = [mode for mode, chosen in ((False, asked.mm2), (True, asked.mm2_exactly_once)) if chosen]
    found += [MirrorMaker2(tasks, exactly_once) for exactly_once in modes for tasks in asked.mm2_tasks]
    if asked.follower and profile.has_floor:
        found.append(Follower())
    return found


def _adapted(profile: Profile, asked: argparse.Namespace) -> Profile:
    load = profile.load
    mine = Load(
        asked.records or load.records,
        asked.size or load.size,
        asked.partitions or load.partitions,
        asked.codec or load.codec,
        asked.batch_size or load.batch_bytes,
    )
    return replace(profile, load=replace(mine, alone=load.alone, odd=asked.odd, overwritten=load.overwritten))


def _profiles(text: str) -> list[Profile]:
    names = list(PROFILES) if text == "all" else list(dict.fromkeys(text.split(",")))
    if unknown := [name for name in names if name not in PROFILES]:
        message = f"expected names among {', '.join(PROFILES)}, found {', '.join(unknown)}"
        raise argparse.ArgumentTypeError(message)
    return [PROFILES[name] for name in names]


def _size(text: str) -> int:
    size = count(text)
    if size < SMALLEST:
        message = f"expected at least {SMALLEST}, found {size}"
        raise argparse.ArgumentTypeError(message)
    return size
