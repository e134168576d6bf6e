"""`anabranch convert`: write the topology file that stands for the configuration of another replicator."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.common import say
from reconciler.cli.migrate.options import (
    Consumers,
    Exclude,
    Include,
    Name,
    Producer,
    Streams,
    of_mirror_maker1,
    tell,
)
from reconciler.cli.planning import DIFFERENT


def convert(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="mm2.properties; connectors of MirrorMaker 2 or Mirus, in JSON or properties; a KafkaMirrorMaker2.",
        ),
    ] = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write it to this new file; by default it is printed."),
    ] = None,
    name: Name = None,
    consumers: Consumers = None,
    producer: Producer = None,
    include: Include = None,
    exclude: Exclude = None,
    streams: Streams = None,
    strict: Annotated[bool, typer.Option("--strict", help="End with 3 where a setting has no equal.")] = False,
) -> None:
    """Convert what other replicators are configured with into a topology file. No cluster is connected to."""
    from reconciler.convert.conversion import convert as converted
    from reconciler.declare.first import check_absent

    if out is not None:
        check_absent(out)
    if bool(files) == bool(consumers):
        message = "expected either files, or --consumer.config and --producer.config"
        raise typer.BadParameter(message, param_hint="FILE...")
    if consumers:
        made = of_mirror_maker1(consumers, producer, include, exclude, streams, name)
    else:
        made = converted(files or [], name)
    if out is None:
        sys.stdout.write(made.text)
    else:
        out.write_text(made.text, encoding="utf-8")
        say(f"wrote {out}; next: anabranch plan {out}")
    tell(made)
    if strict and made.losses:
        raise typer.Exit(DIFFERENT)
