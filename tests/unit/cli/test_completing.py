"""What a shell completes: names of the files on the command line, and codes; never an error instead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

TOPOLOGY = """\
version: 1
name: shop
clusters:
  us-east: {bootstrap: ["127.0.0.1:1"]}
  eu-west: {bootstrap: ["127.0.0.1:2"]}
defaults:
  topics: {include: [orders]}
flows:
  - {from: us-east, to: eu-west}
  - {name: back, from: eu-west, to: us-east}
"""


def completed(folder: Path, line: str, word: int) -> list[str]:
    """Return what bash would offer for the word of this number, asked as its completion script asks."""
    asked = {"_ANABRANCH_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(word)}
    code = "import sys; from reconciler.cli.main import main; sys.argv = ['anabranch']; sys.exit(main())"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, **asked, "NO_COLOR": "1"},
    )  # fmt: skip
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.stdout.split()


@pytest.mark.parametrize(
    ("line", "word", "expected"),
    [
        ("anabranch lag --flow ", 3, ["back", "us-east-eu-west"]),
        ("anabranch lag anabranch.yaml --flow us", 4, ["us-east-eu-west"]),
        ("anabranch lag absent.yaml --flow ", 4, []),
        ("anabranch lag broken.yaml --flow ", 4, []),
        ("anabranch plan --clusters ", 3, ["eu-west", "us-east"]),
        ("anabranch plan --clusters eu-west,u", 3, ["eu-west,us-east"]),
        (
            "anabranch explain AB45",
            2,
            ["AB450", "AB451", "AB452", "AB453", "AB454", "AB455", "AB456", "AB457", "AB458", "AB459"],
        ),
    ],
)
def test_names_and_codes_are_completed(tmp_path: Path, line: str, word: int, expected: list[str]) -> None:
    (tmp_path / "anabranch.yaml").write_text(TOPOLOGY)
    (tmp_path / "broken.yaml").write_text("version: [")
    assert completed(tmp_path, line, word) == expected
