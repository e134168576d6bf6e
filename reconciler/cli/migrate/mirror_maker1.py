"""`anabranch mirror-maker`: run what MirrorMaker 1 is started with, as `kafka-mirror-maker.sh` does."""

from __future__ import annotations

from typing import Annotated

import typer

from reconciler.cli.common import say
from reconciler.cli.log import LogFormat
from reconciler.cli.migrate.options import (
    Consumers,
    Exclude,
    Include,
    Name,
    Producer,
    Streams,
    of_mirror_maker1,
)
from reconciler.cli.migrate.running import UntilCaughtUp, run

_KEPT = "a batch that cannot be sent is tried again, and positions are kept with it"


def mirror_maker1(
    *,
    consumers: Consumers = None,
    producer: Producer = None,
    include: Include = None,
    exclude: Exclude = None,
    streams: Streams = None,
    abort: Annotated[
        str | None,
        typer.Option("--abort.on.send.failure", metavar="BOOLEAN", help="Nothing is lost in either case: it waits."),
    ] = None,
    offsets_every: Annotated[
        str | None,
        typer.Option("--offset.commit.interval.ms", metavar="MS", help="Positions are kept with each commit."),
    ] = None,
    handler: Annotated[
        str | None,
        typer.Option("--message.handler", metavar="CLASS", help="Has no equal: records pass as they are."),
    ] = None,
    handler_args: Annotated[str | None, typer.Option("--message.handler.args", metavar="TEXT", hidden=True)] = None,
    listener: Annotated[
        str | None,
        typer.Option("--rebalance.listener", "--consumer.rebalance.listener", metavar="CLASS", hidden=True),
    ] = None,
    listener_args: Annotated[str | None, typer.Option("--rebalance.listener.args", metavar="TEXT", hidden=True)] = None,
    new_consumer: Annotated[bool, typer.Option("--new.consumer", hidden=True)] = False,
    name: Name = None,
    until_caught_up: UntilCaughtUp = False,
    log_format: LogFormat = None,
) -> None:
    """Run what MirrorMaker 1 is started with: copies keep their topics' names, and no record is lost or doubled."""
    if not consumers:
        message = "one is needed for each source"
        raise typer.BadParameter(message, param_hint="--consumer.config")
    if handler is not None or handler_args is not None:
        message = "records pass as they are; leave it out, and change records behind the copy"
        raise typer.BadParameter(message, param_hint="--message.handler")
    for option, value, why in (
        ("--abort.on.send.failure", abort, _KEPT),
        ("--offset.commit.interval.ms", offsets_every, _KEPT),
        ("--rebalance.listener", listener or listener_args, "processes share partitions by leases"),
        ("--new.consumer", new_consumer or None, "there is no other"),
    ):
        if value is not None:
            say(f"no equal: {option}: {why}", None)
    made = of_mirror_maker1(consumers, producer, include, exclude, streams, name)
    run(made, (), until_caught_up=until_caught_up, log_format=log_format)
