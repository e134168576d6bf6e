"""Writes samples in the two text formats that Prometheus reads: OpenMetrics 1.0, and its own of before (0.0.4).

Written here and not by prometheus-client, whose objects for each sample take ten times as long: with 10,000 partitions
a scrape has several hundred thousand samples. Tests read the text with that library's parsers and with promtool.
Sources: https://github.com/prometheus/OpenMetrics (specification 1.0), "Exposition formats" of Prometheus.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from reconciler.metrics.table import MetricFamily

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PLAIN = "text/plain; version=0.0.4; charset=utf-8"

Value = float | int

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")


class Samples(NamedTuple):
    """The samples of one metric.

    Attributes:
        family: which one.
        lines: for each sample its suffix behind the family's name, its labels as `labelled` returns them, its value.
    """

    family: MetricFamily
    lines: Iterable[tuple[str, str, Value]]


def labelled(names: Sequence[str], values: Sequence[str]) -> str:
    """Return labels as they stand behind a name, `{a="1",b="2"}`; empty without any."""
    pairs = ",".join(f'{name}="{escaped(value)}"' for name, value in zip(names, values, strict=True))
    return f"{{{pairs}}}" if pairs else ""


def escaped(value: str) -> str:
    """Return the value of a label as both formats write it: names of clusters, topics and groups are foreign input."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def labels_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values of which `labelled` made a text."""
    for name, value in _LABEL.findall(text):
        yield name, _ESCAPED.sub(lambda found: "\n" if found[1] == "n" else found[1], value) if "\\" in value else value


def with_label(labels: str, name: str, value: str) -> str:
    """Return labels with one more behind them."""
    pair = f'{name}="{escaped(value)}"'
    return f"{{{pair}}}" if not labels else f"{labels[:-1]},{pair}}}"


def with_labels(found: Iterable[Samples], only: Mapping[str, str]) -> Iterator[Samples]:
    """Yield those samples alone that have some labels with some values."""
    # Quotation marks in values are escaped, so that a pair in the text is a label and no part of a value.
    pairs = [f'{name}="{escaped(value)}"' for name, value in only.items()]
    starts = [(f"{{{pair}", f",{pair}") for pair in pairs]
    for family, lines in found:
        yield Samples(
            family, [line for line in lines if all(first in line[1] or later in line[1] for first, later in starts)]
        )


def wants_openmetrics(accept: str) -> bool:
    """Return whether an `Accept` header names OpenMetrics."""
    return "application/openmetrics-text" in accept


def text(found: Iterable[Samples], *, is_openmetrics: bool) -> Iterator[str]:
    """Yield the text of some metrics in pieces, one or two for each metric.

    Args:
        found: each metric once; its samples stand together, as both formats demand.
        is_openmetrics: else the format of before.
    """
    for family, lines in found:
        suffix = "_total" if family.type == "counter" else ""
        body = "".join([f"{family.name}{more or suffix}{labels} {value}\n" for more, labels, value in lines])
        if not body:
            continue
        # In the older format a counter's own name has the suffix, and a type that is unknown another name.
        name = family.name if is_openmetrics else f"{family.name}{suffix}"
        kind = "untyped" if family.type == "unknown" and not is_openmetrics else family.type
        yield f"# HELP {name} {escaped(family.help)}\n# TYPE {name} {kind}\n"
        yield body
    if is_openmetrics:
        yield "# EOF\n"


def cumulative(
    bounds: Sequence[float], counts: Sequence[int], total: float, labels: str
) -> Iterator[tuple[str, str, Value]]:
    """Yield the lines of a histogram.

    Args:
        bounds: upper bounds of the counts but the last, ascending.
        counts: for each bound what is above the one before and not above it; and one for all above.
        total: the sum of what was counted.
        labels: of the series.
    """
    passed = 0
    for bound, count in zip((*bounds, float("inf")), counts, strict=True):
        passed += count
        yield "_bucket", with_label(labels, "le", "+Inf" if bound == float("inf") else f"{bound}"), passed
    yield "_sum", labels, total
    yield "_count", labels, passed


def one_of_each(
    names: Sequence[str], found: Mapping[str, Value], label: str, labels: str
) -> list[tuple[str, str, Value]]:
    """Return one line for each of some values of a label; 0 where nothing was found."""
    return [("", with_label(labels, label, name), found.get(name, 0)) for name in names]
