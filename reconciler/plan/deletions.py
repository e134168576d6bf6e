"""The guardrail of all deletions: none without a number that somebody gave for it.

Pure. Shared by `apply --allow-delete` and `destroy`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.model.errors import Problem, Refused
from reconciler.model.removals import DeleteTopic
from reconciler.model.steps import Plan
from reconciler.plan.offsets import Observed

MANY = 5
"""More deletions than these are many,"""
MANY_PERCENT = 10
"""and so is a larger part of what is ours on a cluster."""


@dataclass(frozen=True)
class _Share:
    """How many topics are deleted on a cluster, of how many that are ours there."""

    alias: str
    deleted: int
    ours: int

    @property
    def is_large(self) -> bool:
        return self.deleted * 100 > self.ours * MANY_PERCENT

    def __str__(self) -> str:
        return f"{self.alias}: {self.deleted} of the {self.ours} that are ours there"


def check_deletions(plan: Plan, observed: Observed, allowed: Mapping[str, int]) -> None:
    """Make sure that a plan deletes no more than was allowed.

    Args:
        plan: with its deletions.
        observed: what it was made from.
        allowed: how many things of each kind may be deleted at most; what is not named may not.

    Raises:
        Refused: AB420, it deletes more; the remedy names what allows it.
    """
    if plan.to_delete <= allowed.get("topic", 0):
        return
    shares = [_share(plan, alias, observed) for alias in dict.fromkeys(step.cluster for step in _deletions(plan))]
    said = "; ".join(map(str, shares))
    many = [f"more than {MANY}"] if plan.to_delete > MANY else []
    many += [f"more than {MANY_PERCENT} %"] if any(share.is_large for share in shares) else []
    warned = f" ({' and '.join(many)}: is the declaration what you mean?)" if many else ""
    given = f"topic={allowed['topic']}" if "topic" in allowed else "nothing"
    topics = "1 topic" if plan.to_delete == 1 else f"{plan.to_delete} topics"
    raise Refused(
        Problem(
            "AB420",
            plan.topology,
            f"{topics} would be deleted with all records, {said}{warned}; --allow-delete allows {given}",
            f"read the plan; `--allow-delete topic={plan.to_delete}` allows it",
        )
    )


def _share(plan: Plan, alias: str, observed: Observed) -> _Share:
    target = observed[alias]
    ours = sum(record.topology == plan.topology and name in target.names for name, record in target.owned.items())
    return _Share(alias, sum(step.cluster == alias for step in _deletions(plan)), ours)


def _deletions(plan: Plan) -> list[DeleteTopic]:
    return [step for step in plan.steps if isinstance(step, DeleteTopic)]
