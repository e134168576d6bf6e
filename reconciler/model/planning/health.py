"""What `doctor` reads and reports: facts of this machine and of live clusters, and checks with a verdict.

`observe` and `replicator` gather facts, `plan` judges them, `report` prints the checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from reconciler.model.acls.requirements import ResourceKind

Level = Literal["ok", "warning", "failure"]


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
        what: its name: `java`, `cluster us-east: brokers`.
        level: whether it is fine.
        found: what was found.
        remedy: what to do about it; empty where nothing is to be done.
    """

    what: str
    level: Level
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class Machine:
    """This machine and the interpreter that runs on it.

    Attributes:
        python: its version, such as `(3, 11, 4)`.
        executable: its path.
        workers: what `PYSPARK_PYTHON` names; None where it is not set.
        cores: how many processors there are.
    """

    python: tuple[int, int, int]
    executable: str
    workers: str | None
    cores: int


@dataclass(frozen=True)
class BrokerSeen:
    """One broker of a cluster, at the address that it advertises.

    Attributes:
        node: its id.
        address: `host:port`.
        trouble: why no broker answers there; empty where one does.
    """

    node: int
    address: str
    trouble: str = ""


@dataclass(frozen=True)
class ClockSeen:
    """The clock of a cluster's active controller against this machine's.

    Attributes:
        ahead: seconds that the controller's is ahead; None where it cannot be known.
        within: seconds by which that may be wrong.
        why_not: why it cannot be known.
    """

    ahead: float | None = None
    within: float = 0.0
    why_not: str = ""


@dataclass(frozen=True)
class Rights:
    """What our user may do on one cluster, as far as the cluster reports it.

    Attributes:
        operations: by kind and name of a resource: operations that are allowed; None where the cluster does not report
            them. What does not exist yet, so that it is unknown, is left out.
    """

    operations: Mapping[tuple[ResourceKind, str], frozenset[str] | None] = field(default_factory=dict)
