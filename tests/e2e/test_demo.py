"""The demo tells its story to the end, and proves its point."""

from __future__ import annotations

import re

import pytest

from reconciler.demo.story import PATTERNS
from tests.support.commands.command import anabranch

pytestmark = pytest.mark.spark

COPIES = {"fan-out": 2, "aggregation": 2, "active-active": 2, "xdcr": 6}


@pytest.mark.parametrize(
    "pattern",
    [pattern if pattern == "aggregation" else pytest.param(pattern, marks=pytest.mark.long) for pattern in PATTERNS],
)
def test_every_copy_is_identical(pattern: str) -> None:
    ended = anabranch("demo", pattern, "--seconds", "3", limit=300)
    assert ended.code == 0, ended.stdout + ended.stderr
    proven = re.findall(r"^  (\w+) +(\S+) +([\d,]+) records +identical, offset by offset$", ended.stdout, re.MULTILINE)
    assert len(proven) >= COPIES[pattern]
    assert all(int(count.replace(",", "")) > 0 for _, _, count in proven)
    assert "The clusters are stopped" in ended.stdout


def test_an_unknown_pattern_is_a_usage_error() -> None:
    ended = anabranch("demo", "ring")
    assert ended.code == 2
    assert "fan-out" in ended.stderr
