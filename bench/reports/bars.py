"""Bars: what the product promises to reach beside its peers, compared with what came of one report.

The reports print them. A bar that is missed is printed as missed; nothing here fails a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.reports.table import table


@dataclass(frozen=True)
class Bar:
    """One promise.

    Attributes:
        name: what is compared with what.
        value: what was measured.
        limit: what is promised.
        at_least: whether the value must not be below the limit; otherwise not above.
        unit: written behind both.
    """

    name: str
    value: float
    limit: float
    at_least: bool = True
    unit: str = ""

    @property
    def is_met(self) -> bool:
        """Whether the promise is kept."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def bars_table(bars: Sequence[Bar]) -> str:
    """Return the bars as a table, or nothing when there are none."""
    return table(["bar", "measured", "promised", ""], _rows(bars)) if bars else ""


def _rows(bars: Iterable[Bar]) -> Iterable[Sequence[str]]:
    for bar in bars:
        form = ",.3g" if abs(bar.value) < 1 else ",.2f"
        promised = f"{'at least' if bar.at_least else 'at most'} {bar.limit:g}{bar.unit}"
        yield bar.name, f"{bar.value:{form}}{bar.unit}", promised, "met" if bar.is_met else "**missed**"
