"""Runs what was converted as the replicator that it was written for would: applied without deletions, and copied."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.common import TERMINAL, load_topology, say
from reconciler.cli.log import LogFormatOf
from reconciler.cli.migrate.options import tell
from reconciler.cli.patience import FOR_EVER
from reconciler.cli.planning import print_outcome, show_plan
from reconciler.cli.replicate import made_state_dir, replicate
from reconciler.convert.conversion import Converted
from reconciler.model.base.errors import Refused
from reconciler.model.base.files import write_private
from reconciler.model.base.installed import need
from reconciler.operate.applying import Applied, Applying, ApplyOptions
from reconciler.operate.carrying import has_moved_on
from reconciler.operate.patience import Patience

_ATTEMPTS, _PAUSE = 20, 1.0

UntilCaughtUp = Annotated[
    bool, typer.Option("--until-caught-up", help="End when the sources' ends of now are reached: only then with 0.")
]


def run(
    made: Converted, clusters: Sequence[str], *, until_caught_up: bool = False, log_format: LogFormatOf | None = None
) -> None:
    """Apply a converted topology and copy, until stopped; clusters that do not answer are waited for.

    Args:
        made: the topology; its file is kept beside the files of runs, for other commands.
        clusters: aliases of those to copy into; all where none is named.
        until_caught_up: whether it ends when the sources' ends are reached.
        log_format: of lines on stderr.

    Raises:
        typer.Exit: the declaration did not come into force, or as of `replicate`.
    """
    need("replicate")
    tell(made)
    file = _kept(made)
    say(f"as {file}, for other commands: anabranch status {file}")
    patience = Patience(0.0 if until_caught_up else math.inf, TERMINAL)
    patience.until_answered(lambda: _apply(file, clusters))
    wait = None if until_caught_up else FOR_EVER
    replicate(
        [file], clusters=list(clusters) or None, until_caught_up=until_caught_up, wait=wait, log_format=log_format
    )


def _apply(file: Path, clusters: Sequence[str]) -> None:
    topology = load_topology([file])
    applied = _applied(lambda: Applying(topology, ApplyOptions(tuple(clusters)), TERMINAL).run())
    if not applied.plan.changes_nothing:
        show_plan(applied.plan, "text", asks=False)
    print_outcome(applied.plan, applied.outcome, "text")
    if applied.outcome.holds_back(applied.plan):
        raise typer.Exit(applied.exit_code)


def _applied(run: Callable[[], Applied]) -> Applied:
    """Apply, and again where other processes changed the clusters meanwhile: no plan is reviewed here.

    Raises:
        Refused: AB407, they change each time; or as `run` raises it.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return run()
        except Refused as refused:
            if not has_moved_on(refused):
                raise
        time.sleep(_PAUSE)
    return run()


def _kept(made: Converted) -> Path:
    """Write the topology where runs keep their files, so that it is there for `status` and the like."""
    file = kept_at(made.name)
    write_private(file, made.text)
    return file


def kept_at(name: str) -> Path:
    """Return where a topology is kept that was converted to be run; its folder is made.

    Raises:
        BadParameter: that cannot be made.
    """
    folder = made_state_dir(None) / "converted"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"{name}.yaml"
