"""Writes the alert rules and the dashboard of `deploy/monitoring/` from the table of metrics."""

from __future__ import annotations

from pathlib import Path

from reconciler.metrics import monitoring

FOLDER = Path(__file__).parents[1] / "deploy" / "monitoring"
RULES, DASHBOARD = "alerts.yaml", "dashboard.json"


def made() -> dict[str, str]:
    """Return the text of each file, by its name."""
    return {RULES: monitoring.rules(), DASHBOARD: monitoring.dashboard()}


def make(folder: Path = FOLDER) -> None:
    """Write the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in made().items():
        (folder / name).write_text(text, encoding="utf-8")
