"""The manual page has every command as its help has it, and is roff that `man` shows without a warning."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from reconciler.cli.commands import MODULES
from release import man


def test_it_is_that_of_the_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert man.PAGE.read_text(encoding="utf-8") == man.text(), "run `make man`"


def test_it_has_every_command_and_option_in_plain_text() -> None:
    if shutil.which("groff") is None:
        pytest.skip("no groff here")
    command = ["groff", "-man", "-ww", "-Tascii", "-P-cbou", "-rLL=300n"]
    shown = subprocess.run(command, input=man.text(), capture_output=True, text=True, check=True)
    assert shown.stderr == ""
    words = " ".join(shown.stdout.split())
    assert [name for name in MODULES if f"anabranch {name}" not in words] == []
    for said in ("--allow-delete KIND=N", "anabranch describe topic [OPTIONS]", "--wait SECONDS"):
        assert said in words


def test_no_text_is_a_request() -> None:
    assert man._roff(".so /etc/passwd") == "\\&.so /etc/passwd"
    assert man._roff("a\\fB-b") == "a\\efB\\-b"
