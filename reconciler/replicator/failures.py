"""How often each flow's Spark query has ended by itself lately, and when it is tried again.

`session` asks before it begins one anew. What fails again and again is tried more seldom and told as failing, and the
other flows go on. Pure.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

# So many failures within so many seconds are no accident.
_MANY = 5
_LATELY = 300.0
# How long a flow rests then, and how long it must not have failed to be well again.
_REST = 60.0
_WELL = 180.0


@dataclass
class _Record:
    """When one flow failed (monotonic seconds), and why the last time."""

    times: deque[float] = field(default_factory=lambda: deque(maxlen=_MANY))
    why: str = ""
    is_lasting: bool = False


class Failures:
    """What is known of all flows."""

    def __init__(self) -> None:
        self._of: dict[str, _Record] = {}

    def note(self, flow: str, why: str, now: float) -> None:
        """Take note that a flow's query has ended, or had to be ended, at `now` (monotonic seconds)."""
        record = self._of.setdefault(flow, _Record())
        record.is_lasting = self._is_lasting(flow, now)
        record.times.append(now)
        record.why = why
        often = len(record.times) == _MANY and now - record.times[0] < _LATELY
        record.is_lasting = record.is_lasting or often

    def last(self, flow: str) -> str:
        """Return why a flow failed the last time."""
        return self._of[flow].why

    def may_try(self, flow: str, now: float) -> bool:
        """Tell whether a flow may be begun anew at `now`."""
        return not self._is_lasting(flow, now) or now >= self._of[flow].times[-1] + _REST

    def lasting(self, now: float) -> dict[str, str]:
        """Return by flow why it fails again and again; a flow that has not failed for a while is well."""
        return {
            flow: f"its Spark query ended {_MANY} times within {_LATELY / 60:g} minutes; it is begun anew every "
            f"{_REST:g} s: {record.why}"
            for flow, record in self._of.items()
            if self._is_lasting(flow, now)
        }

    def _is_lasting(self, flow: str, now: float) -> bool:
        record = self._of[flow]
        return record.is_lasting and now < record.times[-1] + _WELL
