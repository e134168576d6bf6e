"""Drift as text for people, as Markdown for an issue, and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Group

from reconciler.model.planning.drift import Drift, Drifted, DriftedProcess
from reconciler.report.text.line import Line
from reconciler.report.text.markdown import code, plain
from reconciler.report.text.words import counted

FORMAT = 1
_MARKS = {"missing": ("-", "red"), "changed": ("~", "yellow"), "unmanaged": ("?", "cyan")}


def drift_json(drift: Drift) -> dict[str, Any]:
    """Return `format`, `topology`, `clean`, `clusters`, `drift`, `processes` and `unreachable`.

    `clean` is null where nothing drifted as far as was seen, and some cluster did not answer. `clusters` are those that
    were looked at. Each entry of `drift` has `cluster`, `kind` (`missing`, `changed`, `unmanaged`), `topic`, `field`,
    `desired`, `found` and `remedy`; each of `processes` has `datacenter`, `process`, `fact`, `desired` and `found`;
    each of `unreachable` is a problem.
    """
    return {
        "format": FORMAT,
        "topology": drift.topology,
        "clean": False if not drift.is_clean else None if drift.unseen else True,
        "clusters": list(drift.looked_at),
        "drift": [asdict(one) for one in drift.drifted],
        "processes": [asdict(one) for one in drift.processes],
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
    if drift.processes:
        lines += [Line(), Line("processes", style="bold")]
        lines += [line for one in drift.processes for line in _of_process(one)]
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
    if drift.processes:
        lines += ["", "| data centre | process | fact | desired | found |", "|---|---|---|---|---|"]
        lines += [
            f"| {plain(one.datacenter)} | {code(one.process)} | {plain(one.fact)} | {_cell(one.desired)} "
            f"| {_cell(one.found)} |"
            for one in drift.processes
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
    told = [", ".join(kinds)] if drift.drifted else []
    told += [f"{len(drift.processes)} of processes"] if drift.processes else []
    said = ", ".join(told) or "no drift"
    return f"{said}, incomplete: {counted(len(drift.unseen), 'cluster')} did not answer" if drift.unseen else said


def _lines(one: Drifted) -> Iterator[Line]:
    mark, style = _MARKS[one.kind]
    desired, found = ("not there" if value is None else value for value in (one.desired, one.found))
    yield Line.assemble("  ", (mark, style), f" {one.kind:<9} {one.topic}   {one.field}: {desired} → {found}")
    yield Line(f"{' ' * 14}{one.remedy}", style="dim")


def _of_process(one: DriftedProcess) -> Iterator[Line]:
    yield Line.assemble(
        "  ", ("~", "yellow"), f" {one.datacenter}   {one.process}   {one.fact}: {one.desired} → {one.found}"
    )
    yield Line(f"{' ' * 14}apply deploys it as declared", style="dim")


def _cell(value: str | None) -> str:
    return "" if value is None else code(value)
