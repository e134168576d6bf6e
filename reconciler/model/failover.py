"""A flow that is failed over: its consumers and producers are at the target, and nothing is copied until failback.

`state` keeps it at the target, `cli` writes it; `plan`, `drift` and `replicate` go by it. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Phase = Literal["ending", "over", "returning"]
"""`ending`: the flow is to end, nobody was moved yet; `over`: everybody is at the target; `returning`: what came there
is copied back. In none of them the flow runs."""


@dataclass(frozen=True)
class Cut:
    """Where a copy stood when its flow had ended.

    Attributes:
        topic: the original.
        remote: its copy.
        mode: of its offsets, `identical` or `translated`.
        ends: by partition the source offset that would have been copied next, and the end of the copy's log; what
            stands behind these was written later by others.
    """

    topic: str
    remote: str
    mode: str
    ends: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class FailedOver:
    """The state of a flow that is failed over, on record at its target.

    Attributes:
        flow: name of the flow.
        phase: how far it has come.
        since: when failover began, in seconds since 1970.
        by: who asked for it.
        cuts: by original; empty while the flow is ending.
    """

    flow: str
    phase: Phase
    since: float
    by: str
    cuts: Mapping[str, Cut] = field(default_factory=dict)
