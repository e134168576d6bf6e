"""What comments and issues say, and how it is cut to what a forge takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LIMIT = 65_000
"""Characters; every comment and issue has fewer. GitHub takes 65,536."""

ROOM = 64_000
"""Characters of a plan that `anabranch` may print; the rest is for what stands around it in a comment."""

CLOSING = "\n\n</details>"
_BORDER = "#### "
_KINDS = ("missing", "changed", "unmanaged")
# As `reconciler/report/text/markdown.py` has it; these scripts import nothing of it, as they outlive its versions.
_SPECIAL = frozenset("\\`*_[]<>|#&~$")
_PICTURE = r"(?:[\w+-]*[A-Za-z+-][\w+-]*|100|1234):"
_REFERENCE = re.compile(rf"(?:[@#!$%&~^]|\bGH-)(?=[\w\"{{])|:(?=//|{_PICTURE})|\bwww(?=\.)")
_APART = "&#8203;"
_LONGEST_CODE, _LONGEST_WORDS = 500, 2_000
_NOT_IN_BACKTICKS = re.compile(r"[`|\\]|^\s|\s$")
_NOT_IN_CODE = re.compile(r"[^\w .,:/()+-]|_")
# Code in backticks, which stays as it is; or what notifies a team, or begins a comment.
_CALLS = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)|@(?=\w)|<(?=!--)")
# By exit code of the command; a plan that was made has no entry.
_FAILURES: Mapping[int, str] = {
    2: "could not be made: `anabranch` does not know what it was asked",
    4: "was refused",
    5: "could not be made: another run is at work",
    6: "is missing: some clusters did not answer",
}


@dataclass(frozen=True)
class Outcome:
    """What became of `validate` and `plan`.

    Attributes:
        name: of the topology.
        command: the last one that ran, `validate` or `plan`.
        code: its exit code.
        markdown: the plan; empty where there is none.
        errors: what it said on stderr.
    """

    name: str
    command: str
    code: int
    markdown: str
    errors: str

    @property
    def is_planned(self) -> bool:
        """Whether there is a plan: nothing to do, or something."""
        return self.command == "plan" and self.code in (0, 3)


def marker(kind: str, name: str) -> str:
    """Return the hidden first line by which a text of ours is found again.

    Args:
        kind: `plan` or `drift`.
        name: of the topology.
    """
    return f"<!-- anabranch {kind} {name} -->"


def has_marker(body: str, mark: str) -> bool:
    """Say whether a text begins with a marker; one that quotes it does not."""
    return body.replace("\r\n", "\n").split("\n", 1)[0] == mark


def plan_comment(outcome: Outcome, where: str, commit: str) -> str:
    """Return the comment of a pull request.

    Args:
        outcome: of the commands.
        where: where the whole of it is, as Markdown.
        commit: the newest of the branch.
    """
    mark = marker("plan", outcome.name)
    foot = f"\n\nPlanned for commit {commit[:12]}; whole: {where}.\n"
    if outcome.is_planned:
        return fit_sections(f"{mark}\n", quiet(outcome.markdown.strip()), foot, f"The whole plan: {where}.")
    what = "the declaration" if outcome.command == "validate" else "the plan"
    how = "has errors" if outcome.command == "validate" else _FAILURES.get(outcome.code, "could not be made")
    head = f"{mark}\n### {plain(outcome.name)}: {what} {how}\n\n`anabranch {outcome.command}` ended with exit code "
    said = in_lines(outcome.errors.strip())
    fence = _fence(said)
    note = f"{{}} lines are left out here. All of it: {where}."
    return fit(f"{head}{outcome.code}:\n\n{fence}text\n", said or "(it said nothing)", f"\n{fence}", foot, note)


def drift_title(name: str, drift: Sequence[Mapping[str, Any]]) -> str:
    """Return the title of an issue about drift."""
    kinds = ((kind, sum(one["kind"] == kind for one in drift)) for kind in _KINDS)
    return f"Drift of {name}: " + ", ".join(f"{count} {kind}" for kind, count in kinds if count)


def drift_body(name: str, drift: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of an issue about drift; the same drift gives the same text.

    Args:
        name: of the topology.
        drift: as `anabranch drift --format json` has it.
    """
    head = (
        f"{marker('drift', name)}\nThe clusters are not as the last apply of {plain(name)} left them. "
        "This issue follows the drift and closes by itself when there is none any more.\n\n"
    )
    rows = ["| cluster | | topic | field | desired | found | what to do |", "|---|---|---|---|---|---|---|"]
    rows += [
        f"| {plain(one['cluster'])} | {one['kind']} | {code(one['topic'])} | {code(one['field'])} "
        f"| {code(one['desired'])} | {code(one['found'])} | {plain(one['remedy'])} |"
        for one in drift
    ]
    return fit(head, "\n".join(rows), "", "\n", "{} lines are left out here: `anabranch drift` shows all of them.")


def fit_sections(head: str, markdown: str, foot: str, whole: str) -> str:
    """Return head, Markdown and foot as one text of fewer than `LIMIT` characters.

    `anabranch` puts first what may do harm, and knows how long a plan may be. Only what is longer all the same is cut
    here: sections from the end, and the first of all at the end of a line, each by its name.

    Args:
        head: what must stay, at the front.
        markdown: with a section behind each line that begins with four `#`.
        foot: what must stay, at the end.
        whole: where all of it is, in words.
    """
    room = LIMIT - 1 - len(head) - len(foot)
    if len(markdown) <= room:
        return head + markdown + foot
    first, *sections = re.split(rf"\n(?={_BORDER})", markdown)
    titles = [section.partition("\n")[0].removeprefix(_BORDER) for section in sections]
    for kept in range(len(sections) - 1, 0, -1):
        told = f"\n\n**Left out here: {'; '.join(titles[kept:])}.** {whole}"
        text = "\n".join([first, *sections[:kept]]).rstrip()
        if len(text) + len(told) <= room:
            return head + text + told + foot
    return fit(f"{head}{first}\n\n", markdown[len(first) :].strip(), "", foot, f"{{}} lines are left out here. {whole}")


def fit(head: str, middle: str, closing: str, foot: str, note: str) -> str:
    """Return head, middle, closing and foot as one text of fewer than `LIMIT` characters.

    Only the middle is cut, at the end of a line; what is folded there is closed, and the note follows the closing.

    Args:
        head: what must stay, at the front.
        middle: what may be cut.
        closing: what ends the middle, whole or cut.
        foot: what must stay, at the end.
        note: what is said where something was cut; `{}` is the number of lines.
    """
    room = LIMIT - 1 - len(head) - len(closing) - len(foot)
    if len(middle) <= room:
        return head + middle + closing + foot
    lines = middle.split("\n")
    told = f"\n\n{note}"
    kept, size, is_open = 0, -1, 0
    room -= len(told.format(len(lines)))
    for line in lines:
        size += 1 + len(line)
        opened = max(0, is_open + line.startswith("<details") - line.startswith("</details"))
        if size + opened * len(CLOSING) > room:
            break
        kept, is_open = kept + 1, opened
    text = "\n".join(lines[:kept]) or lines[0][: max(0, room)]
    return head + text + CLOSING * is_open + closing + told.format(len(lines) - kept) + foot


def plain(text: str) -> str:
    """Return text as words in one line: nothing in it is formatted, a link, an image, a comment or a reference."""
    text, parts, at = shown(text, _LONGEST_WORDS), list[str](), 0
    for found in _REFERENCE.finditer(text):
        parts += [_escaped(text[at : found.end()]), _APART]
        at = found.end()
    return "".join([*parts, _escaped(text[at:])])


def code(text: str | None) -> str:
    """Return text as code in one line, also inside of a table cell, and what is not there as an empty one."""
    if text is None:
        return ""
    text = shown(text, _LONGEST_CODE)
    if not text:
        return "(empty)"
    if _NOT_IN_BACKTICKS.search(text) is None:
        return f"`{text}`"
    return f"<code>{_NOT_IN_CODE.sub(lambda found: f'&#{ord(found[0])};', text)}</code>"


def shown(text: object, most: int | None = None) -> str:
    """Return text in one line, cut behind `most`; what is not printable is escaped, and the backslash with it."""
    said = str(text)
    if not said.isprintable():
        said = "".join(char if char.isprintable() and char != "\\" else _in_escapes(char) for char in said)
    return said if most is None or len(said) <= most else f"{said[: most - 1]}…"


def in_lines(text: str) -> str:
    """Return text with its line breaks, and all else in it that is not printable escaped."""
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join("".join(char if char.isprintable() else _in_escapes(char) for char in line) for line in lines)


def quiet(markdown: str) -> str:
    """Return Markdown of `anabranch`, of whatever version, that notifies no team and hides no comment."""

    def apart(found: re.Match[str]) -> str:
        return {"@": "@" + _APART, "<": "&lt;"}.get(found[0], found[0])

    return "\n".join(_CALLS.sub(apart, line) for line in in_lines(markdown).split("\n"))


def logged(text: str) -> str:
    """Return text for a job's log: no line is a command to the runner, as `::` in front and `##[` are on GitHub."""
    lines = in_lines(text).replace("##[", "## [").split("\n")
    return "\n".join(f"| {line}" if line.lstrip().startswith("::") else line for line in lines)


def _in_escapes(char: str) -> str:
    return char.encode("unicode_escape").decode()


def _escaped(text: str) -> str:
    return "".join(f"\\{char}" if char in _SPECIAL else char for char in text)


def _fence(text: str) -> str:
    """Return a fence that nothing in the text can close."""
    return "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
