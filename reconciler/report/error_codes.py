"""The reference of error codes, taken apart: what each code means and what to do, as docs/reference/errors.md has it.

The page is the one place where codes are explained; `explain` shows its words and adds none. Pure: the page's text is
handed in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from reconciler.report.text.line import Line, Lines

_CODE = re.compile(r"AB\d{3}")
_LIKE_A_CODE = re.compile(r"AB\d+", re.IGNORECASE)
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")
# A page to read further on, which stands in parentheses of its own, leads nowhere in a terminal; another code does.
_ASIDE = re.compile(r"\s\(\[(?!`?AB\d)[^]]+\]\([^)]+\)\)")
_STRONG = re.compile(r"\*\*([^*]+)\*\*")
# A stop inside of backticks ends nothing.
_FIRST_WORDS = re.compile(r"(?:`[^`]*`|[^`])*?[.:;](?=\s|$)")
_WIDEST = 100


@dataclass(frozen=True)
class CodeEntry:
    """The entry of one code.

    Attributes:
        code: such as `AB407`.
        chapter: the heading that it stands under.
        preface: text about all codes of the chapter, such as their exit code; perhaps empty.
        paragraphs: of this code, each in one line.
    """

    code: str
    chapter: str
    preface: str
    paragraphs: tuple[str, ...]

    @property
    def meaning(self) -> str:
        """The first words, in one line: what happened."""
        found = _FIRST_WORDS.match(self.paragraphs[0]) if self.paragraphs else None
        return (found[0] if found else " ".join(self.paragraphs)).rstrip(".:;")

    def told(self) -> dict[str, str]:
        """Return it as JSON types."""
        return {
            "code": self.code,
            "chapter": self.chapter,
            "preface": self.preface,
            "meaning": self.meaning,
            "text": "\n\n".join(self.paragraphs),
        }


def is_like_a_code(text: str) -> bool:
    """Return whether text is meant as a code: `ab4` is, `AB407.yaml` is not."""
    return _LIKE_A_CODE.fullmatch(text) is not None


def entries(page: str) -> dict[str, CodeEntry]:
    """Return every entry by its code, in the page's order.

    Args:
        page: the Markdown; `#` begins a chapter, `##` a code or a chapter's section, text before the first code of them
            is their preface.
    """
    found: dict[str, CodeEntry] = {}
    chapter = preface = ""
    for title, body in _sections(page):
        if _CODE.fullmatch(title):
            found[title] = CodeEntry(title, chapter, preface, tuple(_paragraphs(body)))
        else:
            chapter = title
            # An example of a message stands below it, and belongs to no code.
            words, fence, _ = body.partition("```")
            preface = " ".join(_paragraphs(words))
            preface = f"{preface.removesuffix(':')}." if fence else preface
    return found


def entry_text(entry: CodeEntry, width: int) -> Lines:
    """Return an entry for people, in lines of at most `width` letters."""
    lines = [Line.assemble((entry.code, "bold red"), f"  {entry.chapter}")]
    if entry.preface:
        lines += [Line(line, style="dim") for line in _filled(entry.preface, width)]
    for paragraph in entry.paragraphs:
        lines += [Line(), *map(Line, _filled(paragraph, width))]
    return Lines(lines)


def codes_text(listed: Sequence[CodeEntry]) -> Lines:
    """Return one line for each code."""
    lines = [Line.assemble((entry.code, "bold"), f"  {entry.meaning}") for entry in listed]
    return Lines(lines)


def _sections(page: str) -> Iterator[tuple[str, str]]:
    """Yield each heading with what stands below it."""
    parts = re.split(r"^#+ (.+)$", page, flags=re.MULTILINE)
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        yield title.strip(), body


def _paragraphs(body: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", body):
        words = " ".join(_STRONG.sub(r"\1", _LINK.sub(r"\1", _ASIDE.sub("", paragraph))).split())
        if words:
            yield words


def _filled(paragraph: str, width: int) -> list[str]:
    return wrap(paragraph, min(width, _WIDEST), break_long_words=False, break_on_hyphens=False)
