"""Checks of `doctor`, for people and as JSON types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.text import Text

from reconciler.model.health import Check, Level

_STYLES: Mapping[Level, str] = {"ok": "green", "warning": "yellow", "failure": "red"}


def checks_json(checks: Sequence[Check]) -> list[dict[str, Any]]:
    """Return the checks as JSON types."""
    return [asdict(check) for check in checks]


def checks_text(checks: Sequence[Check]) -> Text:
    """Return a line for each check, and what to do under those that are not fine."""
    widest = max(len(level) for level in _STYLES)
    lines: list[Text] = []
    for check in checks:
        line = Text.assemble((check.level.ljust(widest), _STYLES[check.level]), "  ", (check.what, "bold"), "  ")
        lines.append(line.append(check.found))
        if check.remedy:
            lines.append(Text(f"{' ' * widest}  → {check.remedy}"))
    return Text("\n").join(lines)
