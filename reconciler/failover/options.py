"""Options of a failover and of a failback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class FailoverOptions:
    """How a failover is done.

    Attributes:
        groups: names and regular expressions of groups; None means the groups that the flow declares, or all if it
            declares none.
        source_lost: whether the source is treated as lost: it is not contacted.
        only_forward: whether groups that are further on at the target keep their offsets.
    """

    groups: Sequence[str] | None = None
    source_lost: bool = False
    only_forward: bool = False


@dataclass(frozen=True)
class FailbackOptions:
    """How a failback is done.

    Attributes:
        groups: as in `FailoverOptions`.
        rebuild: originals that are deleted and made again from their copies if they have diverged.
        leave_out: originals that no longer exist, whose copies keep their new records.
        only_forward: whether groups that are further on at the source keep their offsets.
    """

    groups: tuple[str, ...] | None = None
    rebuild: frozenset[str] = field(default_factory=frozenset)
    leave_out: frozenset[str] = field(default_factory=frozenset)
    only_forward: bool = False
