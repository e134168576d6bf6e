"""The guardrail of all deletions: none without a number that the user gave for it.

Pure. Shared by `apply --allow-delete` and `destroy`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from reconciler.model.base.errors import Problem, Refused
from reconciler.model.planning.removals import DELETION_KINDS, DeletionKind
from reconciler.model.planning.steps import Plan
from reconciler.plan.copies.failed_over import primaries_deleted
from reconciler.plan.copies.offsets import Observed
from reconciler.plan.guardrails.doubtful_records import check_named

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
        return f"{self.deleted} of the {self.ours} that are ours at {self.alias}"


def check_deletions(
    plan: Plan,
    observed: Observed,
    allowed: Mapping[DeletionKind, int],
    named: Collection[str] = (),
    is_destroy: bool = False,
) -> None:
    """Make sure that a plan deletes no more than was allowed.

    Args:
        plan: with its deletions.
        observed: what it was made from.
        allowed: how many things of each kind may be deleted at most; what is not named may not.
        named: remote topics that `--target` names.
        is_destroy: whether deleting is all that is asked for, so that many deletions are no reason for a doubt.

    Raises:
        Refused: AB420, it deletes more; the remedy names what allows it. AB436, it deletes what people write to. AB445,
            it deletes what the declaration would not have made, and what was not named.
    """
    problems = [*primaries_deleted(plan, observed), *check_named(plan, named)]
    problems += [
        _too_many(plan, kind, observed, allowed, is_destroy)
        for kind in DELETION_KINDS
        if plan.deletions(kind) > allowed.get(kind, 0)
    ]
    if problems:
        raise Refused(problems)


def _too_many(
    plan: Plan, kind: DeletionKind, observed: Observed, allowed: Mapping[DeletionKind, int], is_destroy: bool
) -> Problem:
    count = plan.deletions(kind)
    given = f"; no more than {kind}={allowed[kind]} is allowed" if kind in allowed else ""
    remedy = f"read the plan, then allow it: `--allow-delete {kind}={count}`"
    if kind == "acl":
        what = "1 ACL" if count == 1 else f"{count} ACLs"
        return Problem("AB420", plan.topology, f"{what} of others would be revoked{given}", remedy)
    shares = [_share(plan, cluster.alias, observed) for cluster in plan.clusters if plan.deletions(kind, cluster.alias)]
    said = "; ".join(map(str, shares))
    many = [f"more than {MANY}"] if count > MANY else []
    many += [f"more than {MANY_PERCENT} %"] if any(share.is_large for share in shares) else []
    warned = f" ({' and '.join(many)}: is the declaration what you mean?)" if many and not is_destroy else ""
    topics = "1 topic" if count == 1 else f"{count} topics"
    found = f"{topics} would be deleted, with all records: {said}{warned}{given}"
    return Problem("AB420", plan.topology, found, remedy)


def _share(plan: Plan, alias: str, observed: Observed) -> _Share:
    target = observed[alias]
    ours = sum(record.topology == plan.topology and name in target.names for name, record in target.owned.items())
    return _Share(alias, plan.deletions("topic", alias), ours)
