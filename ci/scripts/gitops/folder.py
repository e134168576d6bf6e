"""The folder that `plan.py` leaves for `comment.py`, for people and for `anabranch apply`."""

from __future__ import annotations

import json
from pathlib import Path

from gitops.text import Outcome


def write(folder: Path, outcome: Outcome) -> None:
    """Write an outcome down; the plan file is there already."""
    (folder / "plan.md").write_text(outcome.markdown, encoding="utf-8")
    (folder / "errors.txt").write_text(outcome.errors, encoding="utf-8")
    value = {"name": outcome.name, "command": outcome.command, "code": outcome.code}
    (folder / "outcome.json").write_text(json.dumps(value) + "\n", encoding="utf-8")


def read(folder: Path) -> Outcome:
    """Read what `write` wrote.

    Raises:
        OSError: there is nothing, as `plan.py` has not come that far.
    """
    value = json.loads((folder / "outcome.json").read_text(encoding="utf-8"))
    texts = ((folder / name).read_text(encoding="utf-8") for name in ("plan.md", "errors.txt"))
    return Outcome(value["name"], value["command"], value["code"], *texts)
