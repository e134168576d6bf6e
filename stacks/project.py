"""The folder of a Pulumi project: where Anabranch's own is recognised, and made where there is none.

A project holds Pulumi.yaml, the settings of its stacks in `stacks/`, and a file that starts the program. In a checkout
the program lies beside it; anywhere else it is the one of the installed package, so that a new release needs no copies.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from reconciler.declare.resources import locate
from reconciler.model.errors import DeclaredInputError, Problem

PROJECT_FILE = "Pulumi.yaml"
START_FILE = "stacks/__main__.py"
DEFAULT_NAME = "pulumi"
"""The folder that a project is made in where none is named."""

_MARK = "stacks.program"
_IGNORED = "stacks/observed/\n"


def default_folder(folder: Path) -> Path:
    """Return where the project is when nobody says: in `folder`, or in the folder `pulumi` there."""
    return folder if is_ours(folder) else folder / DEFAULT_NAME


def is_ours(folder: Path) -> bool:
    """Tell whether a folder holds a Pulumi project that runs Anabranch's program."""
    start = folder / START_FILE
    return (folder / PROJECT_FILE).exists() and start.exists() and _MARK in start.read_text(encoding="utf-8")


def ensure(folder: Path) -> bool:
    """Make a project in a folder unless it is there; return whether it was made.

    Raises:
        DeclaredInputError: AB372, another project is there, or the folder cannot be written.
    """
    if is_ours(folder):
        return False
    if (folder / PROJECT_FILE).exists() or (folder / START_FILE).exists():
        message = "holds a Pulumi project that does not run Anabranch's program"
        raise DeclaredInputError(Problem("AB372", str(folder), message, "name another folder with --pulumi-dir"))
    try:
        (folder / START_FILE).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(locate(START_FILE), folder / START_FILE)
        shutil.copy(locate(PROJECT_FILE), folder / PROJECT_FILE)
        (folder / ".gitignore").write_text(_IGNORED, encoding="utf-8")
    except OSError as error:
        problem = Problem(
            "AB372", str(folder), f"cannot be written: {error.strerror}", "name another with --pulumi-dir"
        )
        raise DeclaredInputError(problem) from None
    return True
