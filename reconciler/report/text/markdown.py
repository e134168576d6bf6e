"""Text that Markdown, or the forges that show it, would read as their own, made safe; all printers of Markdown use it.

`ci/scripts/gitops/text.py` has the same for what it writes itself.
"""

from __future__ import annotations

import re

from reconciler.model.base.text import shown

_SPECIAL = frozenset("\\`*_[]<>|#&~$")
# GitHub and GitLab look for these in what is shown, so that escaping them does not help: `@` notifies those it names,
# `#` and the others are noted down at issues and merge requests, addresses become links, and `:smile:` a picture, but
# not the minutes of a time. What follows is set apart.
_PICTURE = r"(?:[\w+-]*[A-Za-z+-][\w+-]*|100|1234):"
_REFERENCE = re.compile(rf"(?:[@#!$%&~^]|\bGH-)(?=[\w\"{{])|:(?=//|{_PICTURE})|\bwww(?=\.)")
_APART = "&#8203;"
# A comment on a pull request holds 65,536 characters.
_LONGEST_CODE, _LONGEST_WORDS = 500, 2_000
# Backticks hold neither of these; a cell of a table ends at a bar in them as well.
_NOT_IN_BACKTICKS = re.compile(r"[`|\\]|^\s|\s$")
_NOT_IN_CODE = re.compile(r"[^\w .,:/()+-]|_")


def code(text: str) -> str:
    """Return text as code in one line, also inside of a table cell."""
    text = shown(text, _LONGEST_CODE)
    if not text:
        return "(empty)"
    if _NOT_IN_BACKTICKS.search(text) is None:
        return f"`{text}`"
    return f"<code>{_NOT_IN_CODE.sub(lambda found: f'&#{ord(found[0])};', text)}</code>"


def plain(text: str) -> str:
    """Return text as words in one line: nothing in it is formatted, a link, an image, a comment or a reference."""
    text, parts, at = shown(text, _LONGEST_WORDS), list[str](), 0
    for found in _REFERENCE.finditer(text):
        parts += [_escaped(text[at : found.end()]), _APART]
        at = found.end()
    return "".join([*parts, _escaped(text[at:])])


def _escaped(text: str) -> str:
    return "".join(f"\\{char}" if char in _SPECIAL else char for char in text)
