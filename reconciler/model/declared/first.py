"""What a first topology file is made of: the answers that `init` collects and `declare` writes down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Shape = Literal["flow", "fan-out", "aggregation", "active-active"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
MEANING: Mapping[Shape, str] = {
    "flow": "first to second",
    "fan-out": "first to all others",
    "aggregation": "all others to the first",
    "active-active": "each to each",
}


@dataclass(frozen=True)
class InitAnswers:
    """What a first file is made of.

    Attributes:
        name: of the topology.
        clusters: addresses by alias, in the order in which they were given; the first is the source of a `flow` or
            `fan-out`, and the target of an `aggregation`.
        shape: what the clusters form.
        topics: names and regular expressions of the topics to copy.
        is_secured: whether clients log in with SCRAM over TLS; else how they would is left as a comment.
    """

    name: str
    clusters: Mapping[str, Sequence[str]]
    shape: Shape
    topics: Sequence[str]
    is_secured: bool = False
