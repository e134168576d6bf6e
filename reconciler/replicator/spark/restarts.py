"""How often the rounds of each flow have failed lately, and when they are started again.

`session` uses it before it starts a flow again. A flow that fails repeatedly is retried at longer intervals and
shown as failing, and the other flows go on. Pure but for chance: flows that failed together are not retried together.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

# So many failures within so many seconds count as lasting.
_MANY = 5
_LATELY = 300.0
# Seconds before the retry after a second recent failure; each further one doubles them, up to the longest.
_REST, _LONGEST = 2.0, 60.0
# Seconds without a failure after which a flow counts as recovered.
_WELL = 180.0


@dataclass
class _Record:
    """When one flow failed (monotonic seconds), why the last time, and when it may be tried again."""

    times: deque[float] = field(default_factory=lambda: deque(maxlen=_MANY))
    why: str = ""
    is_lasting: bool = False
    in_a_row: int = 0
    try_at: float = 0.0


class RestartBackoff:
    """Failures and retry times of all flows.

    Args:
        chance: returns a random number from 0 to 1: the wait is longer by up to half.
    """

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._of: dict[str, _Record] = {}
        self._chance = chance

    def note(self, flow: str, why: str, now: float) -> None:
        """Note that a flow's rounds have ended, or were stopped, at `now` (monotonic seconds)."""
        record = self._of.setdefault(flow, _Record())
        record.is_lasting = self._is_lasting(flow, now)
        is_in_a_row = bool(record.times) and now - record.times[-1] < (_WELL if record.is_lasting else _WELL / 2)
        record.in_a_row = record.in_a_row + 1 if is_in_a_row else 0
        record.times.append(now)
        record.why = why
        often = len(record.times) == _MANY and now - record.times[0] < _LATELY
        record.is_lasting = record.is_lasting or often
        # A first failure is retried at once.
        rest = min(_REST * 2.0 ** (record.in_a_row - 1), _LONGEST) if record.in_a_row else 0.0
        record.try_at = now + rest * (1 + self._chance() / 2)

    def last(self, flow: str) -> str:
        """Return why a flow failed the last time; empty where it has not."""
        return self._of[flow].why if flow in self._of else ""

    def may_try(self, flow: str, now: float) -> bool:
        """Return whether a flow may be started again at `now`."""
        return self.rest(flow, now) <= 0

    def rest(self, flow: str, now: float) -> float:
        """Return for how many seconds a flow must not be started again."""
        return self._of[flow].try_at - now if flow in self._of else 0.0

    def lasting(self, now: float) -> dict[str, str]:
        """Return by flow why it fails repeatedly; a flow that has not failed for a while is left out."""
        return {
            flow: f"its Spark job ended {_MANY} times within {_LATELY / 60:g} minutes; it is restarted about every "
            f"{_LONGEST:g} s: {record.why}"
            for flow, record in self._of.items()
            if self._is_lasting(flow, now)
        }

    def _is_lasting(self, flow: str, now: float) -> bool:
        record = self._of[flow]
        return record.is_lasting and now < record.times[-1] + _WELL
