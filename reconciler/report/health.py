"""Checks of `doctor`, for people and as JSON types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from reconciler.model.planning.health import Check, Level
from reconciler.report.text.line import Line, Lines

_STYLES: Mapping[Level, str] = {"ok": "green", "warning": "yellow", "failure": "red"}


def checks_json(checks: Sequence[Check]) -> list[dict[str, Any]]:
    """Return the checks as JSON types."""
    return [asdict(check) for check in checks]


def checks_text(checks: Sequence[Check]) -> Lines:
    """Return a line for each check, and what to do under those that are not fine."""
    widest = max(len(level) for level in _STYLES)
    lines: list[Line] = []
    for check in checks:
        line = Line.assemble((check.level.ljust(widest), _STYLES[check.level]), "  ", (check.what, "bold"), "  ")
        lines.append(line.append(check.found))
        if check.remedy:
            lines.append(Line(f"{' ' * widest}  → {check.remedy}"))
    return Lines(lines)
