"""Writes the index of the reports: the newest of each profile, and the ratios of the races in one table. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from bench.reports.table import table

_STEM = re.compile(r"(?P<date>\d{4}-\d{2}-\d{2})-(?P<profile>.+?)(?:-(?P<number>\d+))?")
_RATIOS = "Ratios of the medians:"
_SHOWN = ("records/s", "CPU s per GB", "all memory")

_FRONT = """\
# Results

The newest report of each profile; older ones are in [history](history). Written by `python -m bench index`, and by each
measurement with `--write`. Ratios compare the medians of one run on one machine; figures of different reports must not
be compared (see [the bench](../README.md)).
"""


def profile_of(stem: str) -> str:
    """Return the profile of a report by its file's name without the ending: `race-tiny` of `2026-11-23-race-tiny-2`.

    Raises:
        ValueError: no report has such a name.
    """
    return _parts(stem)["profile"]


def newest(stems: Iterable[str]) -> dict[str, str]:
    """Return the newest of some reports by profile, in the order of the profiles' names."""
    found: dict[str, str] = {}
    for stem in sorted(stems, key=_age):
        found[profile_of(stem)] = stem
    return dict(sorted(found.items()))


def index(reports: Mapping[str, str]) -> str:
    """Return the index.

    Args:
        reports: the newest reports' texts, by their files' names without the ending.
    """
    by_profile = newest(reports)
    parts = [
        _FRONT,
        table(
            ["profile", "report"],
            [[profile, f"[{_parts(stem)['date']}]({stem}.md)"] for profile, stem in by_profile.items()],
        ),
        "## Ratios of the races\n",
        table(
            ["profile", "compared", *_SHOWN],
            [[profile, *row] for profile, stem in by_profile.items() for row in _ratios(reports[stem])],
        ),
    ]
    return "\n".join(parts).rstrip("\n") + "\n"


def _age(stem: str) -> tuple[str, int]:
    found = _parts(stem)
    return found["date"], int(found["number"] or 1)


def _parts(stem: str) -> re.Match[str]:
    found = _STEM.fullmatch(stem)
    if found is None:
        message = f"{stem} is no name of a report"
        raise ValueError(message)
    return found


def _ratios(text: str) -> Iterator[list[str]]:
    """Yield the rows of each table of ratios in a report: what is compared, and the ratios that are shown."""
    for after in text.split(_RATIOS)[1:]:
        rows = [_cells(line) for line in after.strip("\n").split("\n\n")[0].splitlines()]
        head, *others = rows
        for row in others[1:]:
            of = dict(zip(head, row, strict=True))
            yield [row[0], *(of.get(column, "") for column in _SHOWN)]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
