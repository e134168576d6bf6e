"""A plan in a file: written by `plan --out`, reviewed, and carried out by `apply --plan` as long as nothing moved.

The file holds what `plan --format json` prints, and which clusters it is for; never a secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reconciler.model.base.errors import DeclaredInputError, Problem
from reconciler.model.base.files import UnreadableFile, read_json
from reconciler.model.base.text import json_text
from reconciler.model.planning.removals import DeletionKind
from reconciler.model.planning.steps import Plan
from reconciler.report.plan.to_json import plan_json

FORMAT = 1
_KIND = "anabranch-plan"


@dataclass(frozen=True)
class SavedPlan:
    """What was read from a plan file.

    Attributes:
        path: of the file, for messages.
        targets: aliases of the clusters that were planned for.
        topics: remote topics that were planned for; none means all.
        plan: as JSON.
    """

    path: Path
    targets: tuple[str, ...]
    topics: tuple[str, ...]
    plan: dict[str, Any]

    @property
    def topology(self) -> str:
        """Name of the topology."""
        return str(self.plan["topology"])

    @property
    def digest(self) -> str:
        """Of the declaration that it was made from."""
        return str(self.plan["digest"])

    @property
    def deletes(self) -> frozenset[DeletionKind]:
        """The kinds of which it deletes something, each of which needs `--allow-delete`."""
        steps = [step for cluster in self.plan["clusters"] for step in cluster["steps"]]
        topics: set[DeletionKind] = {"topic"} if any(one["action"] == "delete-topic" for one in steps) else set()
        acls: set[DeletionKind] = {"acl"} if any(one.get("foreign") for one in steps) else set()
        return frozenset(topics | acls)


def write_plan(path: Path, plan: Plan, targets: Sequence[str], topics: Sequence[str] = ()) -> None:
    """Write a plan down, over what the file held.

    Raises:
        DeclaredInputError: AB180, the file cannot be written.
    """
    for_what = {"clusters": list(targets), "topics": list(topics)}
    value = {"kind": _KIND, "format": FORMAT, **for_what, "plan": plan_json(plan)}
    write_text(path, f"{json_text(value, indent=2)}\n")


def write_text(path: Path, text: str) -> None:
    """Write a text that was printed, or is not, over what the file held.

    Raises:
        DeclaredInputError: AB180, the file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        problem = Problem("AB180", str(path), f"cannot be written: {error.strerror}", "name another file")
        raise DeclaredInputError(problem) from None


def read_plan(path: Path) -> SavedPlan:
    """Read what `write_plan` wrote.

    Raises:
        DeclaredInputError: AB183, it cannot be read, or is no plan of this release.
    """
    where = str(path)
    try:
        value = read_json(path)
        is_plan = isinstance(value, dict) and value.get("kind") == _KIND
        if is_plan and value["format"] == FORMAT:
            targets, topics = tuple(map(str, value["clusters"])), tuple(map(str, value.get("topics", ())))
            saved = SavedPlan(path, targets, topics, dict(value["plan"]))
            is_whole = isinstance(saved.plan["clusters"], list) and isinstance(saved.deletes, frozenset)
            # A name or a digest that is something else must not be printed either.
            is_named = isinstance(value["plan"]["topology"], str) and isinstance(value["plan"]["digest"], str)
            if is_whole and is_named and saved.topology and saved.digest:
                return saved
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
    except UnreadableFile as error:
        where, why = error.where(path), str(error)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        why = "is no plan file"
    else:
        has_other = is_plan and value["format"] != FORMAT
        why = f"has format {value['format']!r:.20}, expected {FORMAT}" if has_other else "is no plan file"
    raise DeclaredInputError(Problem("AB183", where, why, "write one with `anabranch plan --out`"))
