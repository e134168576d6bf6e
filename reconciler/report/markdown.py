"""Text that Markdown would read as its own, made safe: the printers of plans and drift share it."""

from __future__ import annotations


def code(text: str) -> str:
    """Return text as code inside a table cell; topic names have no backticks, values may have anything."""
    return "`" + text.replace("`", "'").replace("|", "\\|") + "`"


def plain(text: str) -> str:
    """Return text with the characters that Markdown would read as its own escaped."""
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#" else char for char in text)
