"""`anabranch connect-standalone`: run connectors of a single worker, as `connect-standalone.sh` does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.log import LogFormat
from reconciler.cli.migrate.options import Name
from reconciler.cli.migrate.running import UntilCaughtUp, run


def connect_standalone(
    worker: Annotated[Path, typer.Argument(metavar="WORKER", help="worker.properties: what its clients have.")],
    connectors: Annotated[
        list[Path], typer.Argument(metavar="CONNECTOR...", help="Connectors of MirrorMaker 2: properties or JSON.")
    ],
    *,
    name: Name = None,
    until_caught_up: UntilCaughtUp = False,
    log_format: LogFormat = None,
) -> None:
    """Run connectors of MirrorMaker 2 that a single worker of Kafka Connect has: apply them, and copy."""
    from reconciler.convert.conversion import convert_standalone

    made = convert_standalone(worker, connectors, name)
    run(made, (), until_caught_up=until_caught_up, log_format=log_format)
