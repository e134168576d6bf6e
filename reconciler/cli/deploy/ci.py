"""`anabranch ci`: pipelines that plan in the pull request and apply on merge, in a repository of topologies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reconciler.cli.common import as_usage, say, stdout_console
from reconciler.cli.helping import group
from reconciler.operate.pipelines import Forge

ci = group("Have a repository of topologies planned and applied by its pipelines.")


@ci.callback()
def _only() -> None:
    """Have a repository of topologies planned and applied by its pipelines."""


@ci.command("init")
@as_usage
def init(
    forge: Annotated[Forge, typer.Argument(help="Whose pipelines are written.")],
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="The repository of the topologies.")] = Path(),
) -> None:
    """Write pipelines for GitHub or GitLab, pinned with hashes; nothing that is there is overwritten."""
    from reconciler.operate.pipelines import INCLUDE, lacks_include, write_pipelines

    if not folder.is_dir():
        message = f"{folder} is no folder"
        raise typer.BadParameter(message, param_hint="DIR")
    written = write_pipelines(folder, forge)
    for path in written:
        stdout_console().print(f"wrote {path}")
    if not written:
        say("everything is there already")
    if forge == "gitlab" and lacks_include(folder):
        say("add to .gitlab-ci.yml:")
        for line in INCLUDE.splitlines():
            say(f"  {line}")
    say("next: copy the wheel and anabranch.lock of `make release` to ci/, and change the lines marked with yours")
