"""Options that commands share which take what another replicator is started with, called as that calls them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.common import print_problems, say
from reconciler.convert.conversion import Converted

Name = Annotated[str | None, typer.Option("--name", help="The topology's name; by default the first file's.")]
Consumers = Annotated[
    list[Path] | None,
    typer.Option(
        "--consumer.config", "--consumer", metavar="FILE", help="Of MirrorMaker 1: a consumer; one for each source."
    ),
]
Producer = Annotated[
    Path | None, typer.Option("--producer.config", "--producer", metavar="FILE", help="Of MirrorMaker 1: the producer.")
]
Include = Annotated[
    str | None, typer.Option("--include", "--whitelist", metavar="REGEX", help="Of MirrorMaker 1: what it takes.")
]
Exclude = Annotated[
    str | None, typer.Option("--blacklist", metavar="REGEX", help="Of MirrorMaker 1: what it leaves out.")
]
Streams = Annotated[
    int | None, typer.Option("--num.streams", metavar="NUMBER", min=1, help="Of MirrorMaker 1: tasks of each flow.")
]


def of_mirror_maker1(
    consumers: list[Path],
    producer: Path | None,
    include: str | None,
    exclude: str | None,
    streams: int | None,
    name: str | None,
) -> Converted:
    """Convert what a process of MirrorMaker 1 is started with.

    Raises:
        typer.BadParameter: no producer is given.
        DeclaredInputError: as of `convert_mirror_maker1`.
    """
    from reconciler.convert.conversion import convert_mirror_maker1

    if producer is None:
        message = "it names the target, and is needed beside --consumer.config"
        raise typer.BadParameter(message, param_hint="--producer.config")
    return convert_mirror_maker1(consumers, producer, include=include, exclude=exclude, streams=streams, name=name)


def tell(made: Converted) -> None:
    """Print to stderr what a converted file does not have, and what is to be done."""
    print_problems(made.warnings, "warning")
    for line in dict.fromkeys(made.todo):
        say(f"to do: {line}", None)
    for loss in made.losses:
        say(f"no equal: {loss.setting.where} ({loss.setting.title}): {loss.why}", None)
