"""`python -m release lock`, `python -m release jars`, `python -m release monitoring`, `python -m release build`."""

from __future__ import annotations

import argparse
from pathlib import Path

from release import build, jars, lock, monitoring


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("lock", help="write the locks in ci/ anew; asks pip's index for hashes")
    commands.add_parser("jars", help="write the hashes of Kafka's jars anew; fetches all of them")
    commands.add_parser("monitoring", help="write the alert rules and the dashboard in deploy/monitoring anew")
    building = commands.add_parser("build", help="build everything that is published; asks no index")
    building.add_argument(
        "--into", type=Path, default=build.DIST, help="the folder: dist, which is emptied, or an empty one"
    )
    building.add_argument("--allow-dirty", action="store_true", help="also with files that are not committed")
    chosen = parser.parse_args()
    if chosen.command == "lock":
        lock.make()
    elif chosen.command == "jars":
        jars.make()
    elif chosen.command == "monitoring":
        monitoring.make()
    else:
        build.make(chosen.into, allow_dirty=chosen.allow_dirty)


if __name__ == "__main__":
    main()
