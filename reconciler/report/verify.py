"""What a comparison has found, as text for people, as Markdown, and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Group

from reconciler.model.offsets.verification import CODES, NOWHERE, Compared, Counts, Verification
from reconciler.report.text.line import Line
from reconciler.report.text.markdown import code, plain
from reconciler.report.text.measures import count
from reconciler.report.text.words import counted

FORMAT = 1
_ASIDE = {
    "compacted_source": "compacted away at the source since",
    "compacted_target": "compacted away at the target",
    "expired": "deleted by retention on one side",
    "aside": "put aside (dlq)",
    "repeated": "repeated, as at-least-once may",
    "others": "copied there by other flows, as far as is known",
    "behind": "offsets not copied yet",
}


def verification_json(found: Verification) -> dict[str, Any]:
    """Return `format`, `topology`, `equal`, `counts`, `partitions`, `failures`, `incomplete` and `notices`.

    `equal` is null where nothing differs as far as was seen, and not all was, or is copied. Each of `partitions` has
    `flow`, `source`, `topic`, `target`, `remote`, `partition`, `offsets`, `state`, `source_range` and `target_range`
    (the first offset and the one behind the last), `counts`, `differences` (by kind, in records), `first` and `failure`
    (a problem or null). `first` has the first ten differences, each with `code`, `kind`, `source` and `target`
    (offsets; null for none), `what` and `records`. Each of `failures` is a problem, and so is each of `incomplete`,
    what of originals is not copied, and of `notices`: what is to be known of flows that are failed over.
    """
    return {
        "format": FORMAT,
        "topology": found.topology,
        "equal": found.is_equal,
        "counts": asdict(found.counts),
        "partitions": [_partition_json(one) for one in found.partitions],
        "failures": [asdict(problem) for problem in found.failures],
        "incomplete": [asdict(problem) for problem in found.lacks],
        "notices": [asdict(problem) for problem in found.notices],
    }


def _partition_json(one: Compared) -> dict[str, Any]:
    names = ("flow", "source", "topic", "target", "remote", "partition", "offsets", "state")
    return {name: getattr(one, name) for name in names} | {
        "source_range": list(one.source_range),
        "target_range": list(one.target_range),
        "counts": asdict(one.findings.counts),
        "differences": dict(one.findings.by_kind),
        "first": [
            {"code": CODES[told.kind]}
            | asdict(told)
            | {side: None if getattr(told, side) == NOWHERE else getattr(told, side) for side in ("source", "target")}
            for told in one.findings.told
        ],
        "failure": one.failure and asdict(one.failure),
    }


def verification_text(found: Verification) -> Group:
    """Return what was found as lines for a rich console: each topic, and below it what differs."""
    flows = dict.fromkeys(one.flow for one in found.partitions)
    lines = [Line.assemble((found.topology, "bold"), f" · {counted(len(flows), 'flow')} compared")]
    for flow in flows:
        mine = [one for one in found.partitions if one.flow == flow]
        lines += [Line(), Line.assemble((f"{mine[0].source} → {mine[0].target}", "bold"), (f"   {flow}", "dim"))]
        for topic in dict.fromkeys(one.topic for one in mine):
            lines += _topic_lines([one for one in mine if one.topic == topic])
    return Group(*lines, Line(), Line(summary(found), style="bold"), *(Line(f"  {line}") for line in _apart(found)))


def _topic_lines(partitions: list[Compared]) -> Iterator[Line]:
    first = partitions[0]
    different = [one for one in partitions if one.state == "different"]
    unfinished = [one for one in partitions if one.failure is not None]
    records = sum(one.findings.counts.records for one in partitions)
    lacking = [(one, problem) for one in partitions for problem in one.lacks]
    mark, style = ("≠", "red") if different else ("?", "yellow") if unfinished or lacking else ("=", "green")
    where = f"{first.topic} ↔ {first.remote}"
    said = f"{counted(len(partitions), 'partition')}, {count(records)} records the same"
    yield Line.assemble("  ", (mark, style), f" {where}   {said}")
    for one in different:
        yield Line(f"      partition {one.partition}: {_kinds(one)}")
        for told in one.findings.told:
            more = f" ({counted(told.records, 'record')})" if told.records > 1 else ""
            yield Line.assemble(f"        {one.where(told)}: {told.what}{more} ", (f"[{CODES[told.kind]}]", "red"))
    for one in unfinished:
        yield Line.assemble(f"      partition {one.partition}: ", ("not compared to its end", "yellow"))
    for one, problem in lacking:
        said = f"{problem.message} [{problem.code}]"
        yield Line.assemble(f"      partition {one.partition}: ", (said, "yellow"))


def _kinds(one: Compared) -> str:
    return ", ".join(f"{count(number)} {kind}" for kind, number in one.findings.by_kind.items())


def summary(found: Verification) -> str:
    """Return the one line that sums it up; never equal where something was not compared."""
    counts = found.counts
    share = f", {counts.as_bytes * 100 // counts.records} % of them as bytes" if counts.records else ""
    total = f"{count(counts.records)} records are the same{share}"
    if found.different:
        records = sum(sum(one.findings.by_kind.values()) for one in found.different)
        said = f"{count(records)} differ in {counted(len(found.different), 'partition')}; {total}"
    else:
        so_far = " in what is copied" if found.lacks else ""
        said = f"no difference{so_far}: {total}" if found.partitions else "nothing to compare"
    missing = len([one for one in found.partitions if one.failure]) + len(found.unseen)
    apart = [f"{counted(missing, 'part')} could not be compared"] if missing else []
    if found.is_incomplete:
        parts = len([one for one in found.partitions if one.lacks])
        apart.append(f"{counted(parts, 'partition')} of originals hold{'s' if parts == 1 else ''} more than is copied")
    return f"{said}; incomplete: {', '.join(apart)}" if apart else said


def _apart(found: Verification) -> list[str]:
    counts: Counts = found.counts
    return [f"{count(getattr(counts, name))} {words}" for name, words in _ASIDE.items() if getattr(counts, name)]


def verification_markdown(found: Verification) -> str:
    """Return what was found as GitHub-flavoured Markdown that ends with a newline."""
    lines = [f"### {plain(found.topology)}: {plain(summary(found))}"]
    told = [(one, difference) for one in found.different for difference in one.findings.told]
    if told:
        lines += ["", "| flow | where | what | records | |", "|---|---|---|---|---|"]
        lines += [
            f"| {plain(one.flow)} | {code(one.where(difference))} | {plain(difference.what)} | {difference.records} "
            f"| {CODES[difference.kind]} |"
            for one, difference in told
        ]
    apart = [*(f"{one.where}: {one.message}" for one in found.notices), *_apart(found)]
    lines += ["", *(f"- {plain(line)}" for line in apart)] if apart else []
    if found.lacks:
        lines += ["", *(f"- {plain(one.message)} [{one.code}]" for one in found.lacks)]
    if found.failures:
        lines += ["", *(f"- not compared: {plain(one.where)}: {plain(one.message)}" for one in found.failures)]
    return "\n".join(lines) + "\n"
