"""The folder of a Pulumi project: where Anabranch's own is recognised, and made where there is none.

A project holds Pulumi.yaml, the settings of its stacks in `stacks/`, and a file that starts the program. In a checkout
the program lies beside it; anywhere else it is the one of the installed package, so that a new release needs no copies.
"""

from __future__ import annotations

import re
from pathlib import Path

from reconciler.declare.documents.resources import locate
from reconciler.model.base.errors import DeclaredInputError, Problem

PROJECT_FILE = "Pulumi.yaml"
START_FILE = "stacks/__main__.py"
DEFAULT_NAME = "pulumi"
"""The folder that a project is made in where none is named."""

_MARK = "stacks.program"
_IGNORED = "stacks/observed/"
_NAME = re.compile(r"^name: .*$", re.MULTILINE)
# Pulumi takes no longer name of a project.
_LONGEST_NAME = 100


def default_folder(folder: Path) -> Path:
    """Return where the project is when nobody says: in `folder`, or in the folder `pulumi` there."""
    return folder if is_ours(folder) else folder / DEFAULT_NAME


def is_ours(folder: Path) -> bool:
    """Tell whether a folder holds a Pulumi project that runs Anabranch's program."""
    return (folder / PROJECT_FILE).exists() and _starts_ours(folder / START_FILE)


def ensure(folder: Path, topology: str) -> bool:
    """Make a project in a folder unless it is there; return whether it was made.

    Its name holds the topology's, so that stacks of two topologies never are the same in one backend.

    Raises:
        DeclaredInputError: AB372, another project is there, or the folder cannot be written.
    """
    if is_ours(folder):
        return False
    start = folder / START_FILE
    # A start file of ours alone was left by somebody who was killed before the project was whole.
    if (folder / PROJECT_FILE).exists() or (start.exists() and not _starts_ours(start)):
        message = "holds a Pulumi project that does not run Anabranch's program"
        raise DeclaredInputError(Problem("AB372", str(folder), message, "name another folder with --pulumi-dir"))
    try:
        start.parent.mkdir(parents=True, exist_ok=True)
        _put(start, locate(START_FILE).read_text(encoding="utf-8"))
        _ignore(folder / ".gitignore")
        # By this one a project is told, so it comes last.
        text = locate(PROJECT_FILE).read_text(encoding="utf-8")
        _put(folder / PROJECT_FILE, _NAME.sub(f"name: {project_name(topology)}", text, count=1))
    except OSError as error:
        problem = Problem(
            "AB372", str(folder), f"cannot be written: {error.strerror}", "name another with --pulumi-dir"
        )
        raise DeclaredInputError(problem) from None
    return True


def project_name(topology: str) -> str:
    """Return what the project of a topology is called."""
    return f"anabranch-{topology}"[:_LONGEST_NAME]


def _starts_ours(start: Path) -> bool:
    return start.exists() and _MARK in start.read_text(encoding="utf-8")


def _ignore(path: Path) -> None:
    """Let git ignore what is observed, beside what it ignores already."""
    there = path.read_text(encoding="utf-8") if path.exists() else ""
    if _IGNORED not in there.splitlines():
        gap = "" if there.endswith("\n") or not there else "\n"
        _put(path, f"{there}{gap}{_IGNORED}\n")


def _put(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
