"""The words that all printers of plans share, so that text and Markdown never tell it differently."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.desired import DesiredTopic, Reason, Setting
from reconciler.model.steps import ChangeReason, OwnershipReason, Plan

SETTING_REASONS: dict[Reason, str] = {
    "source": "as at the source",
    "source-default": "the default at the source",
    "identical-offsets": "for identical offsets",
}
CHANGE_REASONS: dict[ChangeReason, str] = {
    "source-change": "changed at the source since the last apply",
    "target-change": "changed at the target since the last apply",
    "missing": "not set by the last apply",
    "obsolete": "no longer asked for",
}
OWNERSHIP_REASONS: dict[OwnershipReason, str] = {
    "interrupted": "the apply that made it was interrupted",
    "flow-renamed": "its flow has another name now",
}


def counted(number: int, noun: str) -> str:
    """Return `1 task`, `2 tasks`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def summary(plan: Plan) -> str:
    """Return the one line that sums a plan up."""
    if plan.is_empty:
        return "Nothing to do: 0 to add, 0 to change, 0 to delete."
    return f"{plan.to_add} to add, {plan.to_change} to change, 0 to delete."


def shared_settings(topics: Sequence[DesiredTopic]) -> tuple[Setting, ...]:
    """Return what several new topics all get alike and none of them has from its original: said once for all."""
    if len(topics) <= 1:
        return ()
    alike = set(topics[0].settings).intersection(*(topic.settings for topic in topics[1:]))
    return tuple(setting for setting in topics[0].settings if setting in alike and setting.reason != "source")
