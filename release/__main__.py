"""`python -m release lock`, and likewise `jars`, `monitoring`, `man`, `site`, `build` and `image`."""

from __future__ import annotations

import argparse
from pathlib import Path

from release import build, image, jars, lock, man, monitoring, site


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("lock", help="write the locks in ci/ anew; asks pip's index for hashes")
    commands.add_parser("jars", help="write the hashes of Kafka's jars anew; fetches all of them")
    commands.add_parser("monitoring", help="write the alert rules and the dashboard in deploy/monitoring anew")
    commands.add_parser("man", help="write the manual page anew, from the help of all commands")
    making = commands.add_parser("site", help="build the documentation as a site")
    making.add_argument("--into", type=Path, default=site.BUILT, help="the folder, which is emptied: build/site")
    building = commands.add_parser("build", help="build everything that is published; asks no index")
    building.add_argument(
        "--into", type=Path, default=build.DIST, help="the folder: dist, which is emptied, or an empty one"
    )
    building.add_argument("--allow-dirty", action="store_true", help="also with files that are not committed")
    imaging = commands.add_parser("image", help="build the image that deployments run in")
    imaging.add_argument(
        "--engine", type=image.engine_of, default=["podman"], help="the command that builds, with its options: podman"
    )
    imaging.add_argument("--base", help="image of Debian 12 that it stands on: debian:bookworm-slim")
    imaging.add_argument("--tag", default=image.tag(), help="name of the image: localhost/anabranch:VERSION")
    imaging.add_argument("--release", type=Path, help="a folder of `build`; without it the release is built first")
    imaging.add_argument("--allow-dirty", action="store_true", help="also with files that are not committed")
    chosen = parser.parse_args()
    if chosen.command == "lock":
        lock.make()
    elif chosen.command == "jars":
        jars.make()
    elif chosen.command == "monitoring":
        monitoring.make()
    elif chosen.command == "man":
        man.make()
    elif chosen.command == "site":
        site.make(chosen.into)
    elif chosen.command == "image":
        image.make(chosen.engine, chosen.base, chosen.tag, chosen.release, allow_dirty=chosen.allow_dirty)
    else:
        build.make(chosen.into, allow_dirty=chosen.allow_dirty)


if __name__ == "__main__":
    main()
