"""Markdown in sections that is no longer than it may be: what comes first stays whole, and what is left out is counted.

Called by the printers of what may be too long for a comment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from reconciler.report.text.markdown import code
from reconciler.report.text.words import counted

FEW = 12
"""Names that are shown in the line itself; more of them are folded."""
BORDER = "#### "
"""A line that begins a section begins so: scripts may cut there."""


@dataclass(frozen=True)
class SectionEntry:
    """A line about one thing, or several alike.

    Attributes:
        before: Markdown in front of the name, or of how many there are.
        after: Markdown behind it.
        names: of the things, as Markdown; none where the line is about nothing that has a name.
        noun: what they are.
        article: in front of a name that stands alone, such as `topic `.
    """

    before: str
    after: str = ""
    names: tuple[str, ...] = ()
    noun: str = "topic"
    article: str = ""

    def text(self, shown: int | None = None) -> str:
        """Return it with some of its names, the first; by default with all."""
        if not self.names[1:]:
            article = self.article if self.names else ""
            return f"- {self.before}{article}{''.join(self.names)}{self.after}\n"
        head = f"- {self.before}**{counted(len(self.names), self.noun)}**{self.after}"
        kept = self.names[:shown]
        if not kept:
            return f"{head}\n"
        told = ", ".join(kept)
        if len(kept) == len(self.names) <= FEW:
            return f"{head}: {told}\n"
        rest = f", and {len(self.names) - len(kept):,} more" if len(kept) < len(self.names) else ""
        summary = f"<details><summary>the {counted(len(self.names), self.noun)}</summary>"
        return f"{head}\n\n{summary}\n\n{told}{rest}\n\n</details>\n\n"

    def within(self, room: int) -> tuple[str, int]:
        """Return it with as many names as have room, and how many these are."""
        if len(whole := self.text()) <= room:
            return whole, len(self.names)
        # Never longer than with one name and all further ones left out, without that name.
        left = room - len(self.text(1)) + len(self.names[0] if self.names else "")
        shown = 0
        for name in self.names:
            left -= len(name) + 2
            if left < 0:
                break
            shown += 1
        shown = min(shown, len(self.names) - 1) if len(self.names) > 1 else 0
        return self.text(shown), shown


@dataclass(frozen=True)
class Section:
    """Entries under a title.

    Attributes:
        title: Markdown.
        entries: in their order.
        is_vital: whether it is never shortened, as it is needed for a decision.
    """

    title: str
    entries: tuple[SectionEntry, ...]
    is_vital: bool = True

    @property
    def whole(self) -> str:
        """All of it."""
        return self._of([entry.text() for entry in self.entries])

    @property
    def names(self) -> int:
        """How many names it has."""
        return sum(len(entry.names) for entry in self.entries)

    def least(self, command: str) -> str:
        """Return it without any entry: only how many are left out."""
        return self._of([_note(len(self.entries), self.names, command)])

    def within(self, room: int, command: str) -> tuple[str, bool]:
        """Return it in as many characters, at least those of `least`, and whether that is all of it.

        What is left out is at its end: names, and only where the others have no room without them, whole entries.
        """
        if len(whole := self.whole) <= room:
            return whole, True
        room -= len(self.least(command))
        texts: list[str] = []
        for entry in self.entries:
            text = entry.text(0)
            if len(text) > room:
                break
            texts.append(text)
            room -= len(text)
        left_out = 0
        for number, entry in enumerate(self.entries):
            if number >= len(texts):
                left_out += len(entry.names)
            elif len(entry.names) > 1:
                text, shown = entry.within(room + len(texts[number]))
                room += len(texts[number]) - len(text)
                texts[number] = text
                left_out += len(entry.names) - shown
        return self._of([*texts, _note(len(self.entries) - len(texts), left_out, command)]), False

    def _of(self, texts: Iterable[str]) -> str:
        return f"\n{BORDER}{self.title}\n\n" + "".join(texts)


def within(sections: Sequence[Section], room: int, command: str) -> Iterator[tuple[str, bool]]:
    """Yield each section as Markdown, and whether it is whole; the first ones get the room before the others.

    Args:
        sections: in their order.
        room: characters for all of them; where it is too small even for what is left out of each, that is yielded.
        command: shows all.
    """
    least = [len(section.least(command)) for section in sections]
    spare = room - sum(least)
    for section, floor in zip(sections, least, strict=True):
        text, is_whole = section.within(spare + floor, command)
        spare += floor - len(text)
        yield text, is_whole


def _note(entries: int, names: int, command: str) -> str:
    lines = [counted(entries, "line")] if entries else []
    told = [counted(names, "name")] if names else []
    return f"- **{' and '.join([*lines, *told])} left out here**: {code(command)} shows all\n"
