"""Every code that the program can show is explained, and nothing is explained that it cannot show."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_code_is_explained() -> None:
    sources = [*ROOT.glob("reconciler/**/*.py"), *ROOT.glob("stacks/*.py")]
    used = {code for path in sources for code in re.findall(r'"(AB\d{3})"', path.read_text(encoding="utf-8"))}
    page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    explained = re.findall(r"^## (AB\d{3})$", page, re.MULTILINE)
    assert len(explained) == len(set(explained))
    assert used == set(explained)
