"""What a target cluster was seen to do: the probe's findings, as values.

`replicator.gaps.probe` finds them, `state` stores them. Kafka's own brokers do all of it; others with its
protocol may not, and then identical offsets cannot be held there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from reconciler.model.base.shape import TEXT, TIME, WORD, fields, listed, one_of


class Capability(StrEnum):
    """One thing that the replicator may rely on."""

    LOG_END = "log-end"  # OffsetForLeaderEpoch returns the log end
    REPEAT = "repeat"  # a repeated batch is answered with where the first one stands
    SEQUENCE = "sequence"  # a batch that leaves a gap in the sequence is refused
    PRODUCERS = "producers"  # DescribeProducers returns the last sequence
    MARKERS = "markers"  # we may write transaction markers, and each takes one offset
    TRANSACTIONS = "transactions"  # an empty aborted transaction takes one offset


# Without one of these, a copy could lose or double records unseen.
REQUIRED = (Capability.LOG_END, Capability.REPEAT, Capability.SEQUENCE, Capability.PRODUCERS)


class Verdict(StrEnum):
    """How a trial ended."""

    HOLDS = "holds"
    FAILS = "fails"
    REFUSED = "refused"  # unknown, as a permission is missing


@dataclass(frozen=True)
class ProbeFinding:
    """The end of one trial.

    Attributes:
        capability: what was tried.
        verdict: how it ended.
        detail: what was expected and seen; empty where it holds.
    """

    capability: Capability
    verdict: Verdict
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.capability}: {self.detail}" if self.detail else self.capability.value


@dataclass(frozen=True)
class Capabilities:
    """What one cluster was seen to do.

    Attributes:
        cluster_id: Kafka's id of the cluster.
        time: seconds since 1970.
        findings: one for each capability.
    """

    cluster_id: str
    time: float
    findings: tuple[ProbeFinding, ...]

    def verdict(self, capability: Capability) -> Verdict | None:
        """Return how the trial of `capability` ended; None when there was none."""
        return next((found.verdict for found in self.findings if found.capability is capability), None)

    def required(self, verdict: Verdict) -> tuple[ProbeFinding, ...]:
        """Return what ended with `verdict` of all that identical offsets require."""
        return tuple(found for found in self.findings if found.capability in REQUIRED and found.verdict is verdict)

    @property
    def is_sufficient(self) -> bool:
        """Whether all that identical offsets require was seen."""
        return all(self.verdict(capability) is Verdict.HOLDS for capability in REQUIRED)

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON types; `from_json` is its inverse."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Capabilities:
        """Read what `to_json` returned.

        Raises:
            Misfit: it is something else.
        """
        known = fields(value, {"cluster_id": WORD, "time": TIME, "findings": listed(_finding, 1_000)})
        # Another release may have tried more.
        findings = tuple(
            ProbeFinding(Capability(name), verdict, said) for name, verdict, said in known["findings"] if name in _KNOWN
        )
        return cls(known["cluster_id"], float(known["time"]), findings)


_KNOWN = frozenset(Capability)
_VERDICT = one_of(*Verdict)


def _finding(value: Any) -> tuple[str, Verdict, str]:
    known = fields(value, {"capability": WORD, "verdict": _VERDICT, "detail": TEXT})
    return known["capability"], Verdict(known["verdict"]), known["detail"]
