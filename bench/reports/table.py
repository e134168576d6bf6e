"""Markdown tables, and the statements about the machine that every report has. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

_NOISE = 0.1


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, words to the left, numbers to the right.

    Args:
        heads: the headings.
        rows: at least one row of cells.
    """
    rows = list(rows)
    rulers = ["--:" if _is_number(rows[0][at]) else "---" for at in range(len(heads))]
    return "".join(f"| {' | '.join(line)} |\n" for line in (heads, rulers, *rows))


def machine_lines(machine: Mapping[str, str]) -> str:
    """Return facts about the machine as a list."""
    return "".join(f"- {name}: {fact}\n" for name, fact in machine.items())


def noise_line(load_before: float, worst: float) -> str:
    """Return the line that tells whether the machine was quiet.

    Args:
        load_before: the load average before the start.
        worst: processors that were busy with other things, in the worst measurement.
    """
    quiet = f"load average {load_before:.2f} before the start, at most {worst:.2f} processors busy elsewhere"
    if worst < _NOISE:
        return f"- quiet: {quiet}\n"
    return f"- **not quiet**: {quiet}; judge by CPU seconds rather than by speed\n"


def _is_number(cell: str) -> bool:
    return cell.lstrip("-+")[:1].isdigit()
