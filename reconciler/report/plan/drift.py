"""Drift as text for people, as Markdown for an issue, and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Group

from reconciler.model.planning.drift import Drift, Drifted
from reconciler.report.text.line import Line
from reconciler.report.text.markdown import code, plain
from reconciler.report.text.words import counted

FORMAT = 1
_MARKS = {"missing": ("-", "red"), "changed": ("~", "yellow"), "unmanaged": ("?", "cyan")}


def drift_json(drift: Drift) -> dict[str, Any]:
    """Return `format`, `topology`, `clean`, `clusters`, `drift` and `unreachable`.

    `clean` is null where nothing drifted as far as was seen, and some cluster did not answer. `clusters` are those that
    were looked at. Each entry of `drift` has `cluster`, `kind` (`missing`, `changed`, `unmanaged`), `topic`, `field`,
    `desired`, `found` and `remedy`; each of `unreachable` is a problem.
    """
    return {
        "format": FORMAT,
        "topology": drift.topology,
        "clean": False if drift.drifted else None if drift.unseen else True,
        "clusters": list(drift.looked_at),
        "drift": [asdict(one) for one in drift.drifted],
        "unreachable": [asdict(problem) for problem in drift.unseen],
    }


def drift_text(drift: Drift) -> Group:
    """Return drift as lines for a rich console."""
    lines = [Line.assemble((drift.topology, "bold"), f" · {counted(len(drift.looked_at), 'target cluster')} looked at")]
    for alias in drift.looked_at:
        mine = [one for one in drift.drifted if one.cluster == alias]
        lines += [Line(), Line(alias, style="bold")]
        if not mine:
            lines.append(Line("    no drift", style="dim"))
        lines += [line for one in mine for line in _lines(one)]
    return Group(*lines, Line(), Line(summary(drift), style="bold"))


def drift_markdown(drift: Drift) -> str:
    """Return drift as GitHub-flavoured Markdown that ends with a newline."""
    lines = [f"### {plain(drift.topology)}: {plain(summary(drift))}"]
    if drift.drifted:
        lines += ["", "| cluster | | topic | field | desired | found | what to do |", "|---|---|---|---|---|---|---|"]
        lines += [
            f"| {plain(one.cluster)} | {one.kind} | {code(one.topic)} | {code(one.field)} | {_cell(one.desired)} "
            f"| {_cell(one.found)} | {plain(one.remedy)} |"
            for one in drift.drifted
        ]
    if drift.unseen:
        lines += [
            "",
            *(f"- not looked at: {plain(problem.where)}: {plain(problem.message)}" for problem in drift.unseen),
        ]
    return "\n".join(lines) + "\n"


def summary(drift: Drift) -> str:
    """Return the one line that sums drift up; never clean where some cluster did not answer."""
    kinds = [f"{sum(one.kind == kind for one in drift.drifted)} {kind}" for kind in _MARKS]
    said = ", ".join(kinds) if drift.drifted else "no drift"
    return f"{said}, incomplete: {counted(len(drift.unseen), 'cluster')} did not answer" if drift.unseen else said


def _lines(one: Drifted) -> Iterator[Line]:
    mark, style = _MARKS[one.kind]
    desired, found = ("not there" if value is None else value for value in (one.desired, one.found))
    yield Line.assemble("  ", (mark, style), f" {one.kind:<9} {one.topic}   {one.field}: {desired} → {found}")
    yield Line(f"{' ' * 14}{one.remedy}", style="dim")


def _cell(value: str | None) -> str:
    return "" if value is None else code(value)
