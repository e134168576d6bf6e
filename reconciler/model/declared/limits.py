"""How much of what a source has a flow takes, whatever is made there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from reconciler.model.base.errors import Problem

Limit = Literal["topics", "partitions", "growth"]
LIMITS: tuple[str, ...] = get_args(Limit)

_SHOWN = 5
_UNITS: dict[str, str] = {"topics": "topics", "partitions": "partitions", "growth": "partitions at one look"}


@dataclass(frozen=True)
class Limits:
    """The most that a flow has at its target.

    Attributes:
        topics: remote topics.
        partitions: partitions of all of them together.
        growth: partitions that one refresh of the reconcile loop adds; an apply adds what its plan shows.
    """

    topics: int = 10_000
    partitions: int = 100_000
    growth: int = 1_000


@dataclass(frozen=True)
class Beyond:
    """What a flow leaves out because of one of its limits; what is copied already goes on.

    Attributes:
        flow: name of the flow.
        limit: which one.
        most: its value.
        found: how many there would be, in the limit's unit.
        left_out: the original topics that are not copied.
        not_enlarged: the original topics whose copies keep the number of partitions that they have, and that number.
    """

    flow: str
    limit: Limit
    most: int
    found: int
    left_out: tuple[str, ...] = ()
    not_enlarged: tuple[tuple[str, int], ...] = ()

    @property
    def why(self) -> str:
        """The reason, in words that follow a topic's name."""
        return f"beyond limits.{self.limit} of flow {self.flow}: {self.most:,} {_UNITS[self.limit]} [AB237]"

    @property
    def problem(self) -> Problem:
        """All of it as one problem."""
        told = [
            f"{verb} {_named(topics)}"
            for verb, topics in (
                ("not copied:", self.left_out),
                ("copies not enlarged:", tuple(topic for topic, _ in self.not_enlarged)),
            )
            if topics
        ]
        message = f"at most {self.most:,} {_UNITS[self.limit]}, found {self.found:,}; {'; '.join(told)}"
        remedy = "raise it to copy these, or exclude them"
        if self.limit == "growth":
            remedy = (
                "`anabranch apply` creates all at once, the next refresh creates more; exclude what is not to be copied"
            )
        return Problem("AB237", f"flow {self.flow}, limits.{self.limit}", message, remedy)


def _named(topics: tuple[str, ...]) -> str:
    more = f" and {len(topics) - _SHOWN:,} more" if len(topics) > _SHOWN else ""
    return f"{', '.join(topics[:_SHOWN])}{more}"
