"""What changes when another declaration comes into force at a target, in the words of topology files.

Values only; `plan` makes them, printers show them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OUT_OF_REACH = "AB446"
"""The code of the notice that a cluster where flows may be in force could not be reached."""

Subject = Literal["flow", "cluster", "topology"]
"""The subject of a declaration: a flow, how a cluster is reached, or all together."""

Fate = Literal["begins", "changes", "ends"]
"""What becomes of it; clusters and the topology change."""


@dataclass(frozen=True)
class FieldChange:
    """One field that changes; of a list each item that comes or goes.

    Attributes:
        field: as topology files call it, with its parents: `tasks`, `topics.include`, `policy.rules`.
        old: its value, written as in the files; None for an item that comes.
        new: likewise; None for an item that goes.
    """

    field: str
    old: str | None
    new: str | None


@dataclass(frozen=True)
class StoppedTopic:
    """A topic that a flow copies no longer; its copy stays, and follows no more.

    Attributes:
        topic: at the source.
        remote: its copy.
        records: that the copy holds, by its offsets; as many as there are at least, where not all is known.
    """

    topic: str
    remote: str
    records: int


@dataclass(frozen=True)
class Change:
    """What changes of a flow, of a cluster or of the topology, against what is in force.

    Attributes:
        subject: what it is.
        name: of the flow or the cluster, or of the topology.
        fate: what becomes of it.
        fields: that change; none of a flow that begins or ends.
        stops: topics that are copied no longer.
        why: of a flow that ends, why it does, in words that follow its name.
    """

    subject: Subject
    name: str
    fate: Fate
    fields: tuple[FieldChange, ...] = ()
    stops: tuple[StoppedTopic, ...] = ()
    why: str = ""
