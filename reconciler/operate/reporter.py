"""How an operation reports progress and notices while it runs: calls to a `Reporter`, which a caller may implement."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

from reconciler.model.base.errors import Problem

Emphasis = Literal["detail", "info", "caution"]
"""How much a note matters: `detail` may be shown dimmed, `caution` should stand out."""


class Reporter:
    """Receives what an operation reports. This class discards all of it; override what is needed.

    All methods are called from the thread that runs the operation, in the order of events.
    """

    def note(self, text: str, emphasis: Emphasis = "detail") -> None:
        """Receive one line of text about what has happened."""

    def warn(self, problems: Iterable[Problem]) -> None:
        """Receive problems that do not end the operation."""

    def working(self, what: str) -> AbstractContextManager[None]:
        """Return a context manager that is entered for as long as `what` is under way."""
        del what
        return nullcontext()

    def counting(self, what: str, total: int) -> AbstractContextManager[Callable[[], None]]:
        """Return a context manager for work of `total` steps; it yields a function that is called after each step."""
        del what, total
        return nullcontext(lambda: None)


SILENT = Reporter()
"""Discards everything; the default of all operations."""
