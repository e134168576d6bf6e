"""`--env NAME` adds the files of an environment, and takes its values, in whatever command reads topology files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.cli.environments import choose
from reconciler.cli.main import main
from reconciler.cli.planning import tell_next

SHOP = """\
version: 1
name: shop
flows: [{from: east, to: west, topics: {include: [orders]}}]
"""
CLUSTERS = """\
version: 1
clusters:
  east: {bootstrap: [env:EAST_BOOTSTRAP]}
  west: {bootstrap: ["west.%s:9092"]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("ANABRANCH_ENV", "ANABRANCH_FILE", "EAST_BOOTSTRAP", "CODE"):
        # What a test sets by itself is taken back, too.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    (tmp_path / "anabranch.yaml").write_text(SHOP)
    for name in ("staging", "prod"):
        (tmp_path / f"anabranch.{name}.yaml").write_text(CLUSTERS % name)
    (tmp_path / "anabranch.prod.values.yaml").write_text("EAST_BOOTSTRAP: east.prod:9092\nCODE: 007\n")
    return tmp_path


def test_each_environment_adds_what_it_declares(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate"]) == 1
    assert "clusters" in capsys.readouterr().err, "none is declared without an environment"
    named = ["validate", "--env", "prod", "--", "anabranch.yaml"]
    for line in (["validate", "--env", "prod"], ["--env=staging", "validate"], named):
        assert main(line) == 0, line
        assert "2 clusters, 1 flow" in capsys.readouterr().out


def test_the_variable_chooses_one_for_this_process_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_ENV", "prod")
    assert main(["validate"]) == 0
    assert "ANABRANCH_ENV" not in os.environ, "what it starts has its files in a folder of its own"


def test_values_stand_for_references_unless_the_variable_is_set(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["validate", "--env", "prod"]) == 0
    assert (os.environ["EAST_BOOTSTRAP"], os.environ["CODE"]) == ("east.prod:9092", "007")
    monkeypatch.setenv("EAST_BOOTSTRAP", "mine:1")
    assert main(["validate", "--env", "prod"]) == 0
    assert os.environ["EAST_BOOTSTRAP"] == "mine:1"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("test", "no files of test beside anabranch.yaml: expected anabranch.test.yaml"),
        ("../prod", "an environment has a name of letters, digits, _ and -"),
    ],
)
def test_one_without_files_is_refused(folder: Path, capsys: pytest.CaptureFixture[str], name: str, words: str) -> None:
    assert main(["validate", "--env", name]) == 2
    assert words in " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("A: 1\nB: {}\n", 2, "expected one value; found a mapping"),
        ("A-B: secret-text\n", 1, "expected the name of a variable"),
        ("A:\n", 1, "expected one value; found nothing"),
    ],
)
def test_values_that_are_none_are_errors_and_not_repeated(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, line: int, words: str
) -> None:
    (folder / "anabranch.prod.values.yaml").write_text(text)
    assert main(["validate", "--env", "prod"]) == 1
    said = capsys.readouterr().err
    assert (f"anabranch.prod.values.yaml:{line}:" in said, words in " ".join(said.split())) == (True, True), said
    assert ("[AB133]" in said, "secret-text" in said) == (True, False)


def test_the_next_command_is_of_the_same_environment(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    choose("prod")
    tell_next("apply", [Path("anabranch.yaml"), Path("anabranch.prod.yaml")])
    choose(None)
    assert capsys.readouterr().out == "next: anabranch apply --env prod\n"
