"""`anabranch mirror-maker2`: run an `mm2.properties` as it is, as `connect-mirror-maker.sh` does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.log import LogFormat
from reconciler.cli.migrate.options import Name
from reconciler.cli.migrate.running import UntilCaughtUp, run

_CLUSTERS = "--clusters"


def mirror_maker2(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="mm2.properties.")],
    further: Annotated[
        list[str] | None, typer.Argument(metavar="[ALIAS...]", help="Further clusters of --clusters.")
    ] = None,
    *,
    clusters: Annotated[
        list[str] | None,
        typer.Option(_CLUSTERS, metavar="ALIAS", help="Clusters nearby: only these are copied into."),
    ] = None,
    name: Name = None,
    until_caught_up: UntilCaughtUp = False,
    log_format: LogFormat = None,
) -> None:
    """Run what a dedicated MirrorMaker 2 is configured with: apply it, without deletions, and copy."""
    from reconciler.convert.conversion import convert

    if further and not clusters:
        message = f"expected one file, and aliases behind {_CLUSTERS}; found {' '.join(further)}"
        raise typer.BadParameter(message, param_hint="FILE")
    named = [alias for word in (*(clusters or ()), *(further or ())) for alias in word.split(",") if alias]
    run(convert([file], name), named, until_caught_up=until_caught_up, log_format=log_format)
