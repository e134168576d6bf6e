"""What outsiders changed on a target since the last apply, as values.

`plan.findings.drift` finds it, `report` prints it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from reconciler.model.base.errors import Problem

DriftKind = Literal["missing", "changed", "unmanaged"]
"""What is ours is gone; is another; or something stands there that we did not make."""


@dataclass(frozen=True)
class Drifted:
    """One difference between what the last apply left and what is there.

    Attributes:
        cluster: alias of the target.
        kind: of the difference.
        topic: the remote topic; or `flow` and its name, of a flow that is failed over in its file or on record alone.
        field: what of it: `topic`, `topic id`, `partitions`, `replicas`, `failed-over`, or the key of a setting.
        desired: as the last apply left it; None where it did not make or set it.
        found: as it is; None where it is not there.
        remedy: what undoes it.
    """

    cluster: str
    kind: DriftKind
    topic: str
    field: str
    desired: str | None
    found: str | None
    remedy: str


@dataclass(frozen=True)
class DriftedProcess:
    """One difference between a process as it is declared and as it runs.

    Attributes:
        datacenter: its data centre.
        process: its name.
        fact: what of it: `process`, or the name of one of its facts.
        desired: as declared.
        found: as it runs.
    """

    datacenter: str
    process: str
    fact: str
    desired: str
    found: str


@dataclass(frozen=True)
class Drift:
    """Everything that drifted on the targets of a topology.

    Attributes:
        topology: its name.
        looked_at: aliases of the targets that answered.
        drifted: what is different there.
        unseen: why the others could not be read; nothing is reported of them.
        processes: what is different of processes that are deployed on this machine.
    """

    topology: str
    looked_at: tuple[str, ...]
    drifted: tuple[Drifted, ...] = ()
    unseen: tuple[Problem, ...] = ()
    processes: tuple[DriftedProcess, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether nothing of what was seen is different."""
        return not self.drifted and not self.processes
