"""Translated offsets as a table, as CSV and as JSON: what `offsets translate` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reconciler.model.base.text import csv_text
from reconciler.model.offsets.translation import Question, Translated
from reconciler.report.text.columns import aligned
from reconciler.report.text.line import Line

Answer = tuple[Question, Translated]

COLUMNS = ("topic", "partition", "offset", "translated", "how", "why")
_NUMBERS = COLUMNS[1:4]


def translation_lines(answers: Sequence[Answer]) -> list[Line]:
    """Return a line for each answer, and one of titles."""
    rows = [[_cell(value) for value in _values(answer)] for answer in answers]
    return aligned(COLUMNS, rows, right=_NUMBERS)


def translation_csv(answers: Sequence[Answer]) -> str:
    """Return the answers as CSV with a header; nothing stands for an offset that there is not."""
    return csv_text(COLUMNS, map(_values, answers))


def translation_json(flow: str, answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the answers as JSON values."""
    offsets = [{"way": one[0].way} | dict(zip(COLUMNS, _values(one), strict=True)) for one in answers]
    return {"flow": flow, "offsets": offsets}


def _values(answer: Answer) -> tuple[str | int | None, ...]:
    question, found = answer
    return question.topic, question.partition, question.offset, found.offset, found.how, found.why


def _cell(value: str | int | None) -> str:
    return "-" if value is None else str(value)
