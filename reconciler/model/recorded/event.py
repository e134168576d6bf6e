"""One thing that was done to a topology, as a target has it on record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

EventKind = Literal["applied", "destroyed", "moved", "changed", "paused", "failed over", "failing over", "failing back"]
"""What was done; `moved` are the journals, `changed` a flow at run time."""


@dataclass(frozen=True)
class RecordedEvent:
    """One thing that was done.

    Attributes:
        time: when, in seconds since 1970.
        cluster: alias of the target that has it on record.
        kind: what.
        about: the digest that was put in force, the flow, or what of it.
        by: the user.
        flow: which it is about; empty where it is about all of that target.
    """

    time: float
    cluster: str
    kind: EventKind
    about: str
    by: str
    flow: str = ""
