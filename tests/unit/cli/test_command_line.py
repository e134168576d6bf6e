"""The command line as a whole: help that can be read, files that need not be named, and names that options share."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from reconciler.cli.commands import MODULES
from reconciler.cli.helping import BELOW, GROUPS
from reconciler.cli.main import command_line, main
from reconciler.declare.rewrite import yaml_text

SUMMARIES = {name: summary for names in GROUPS.values() for name, summary in names.items()}
LONGEST = 45
DECLARED = """\
version: 1
name: both
clusters: {east: {bootstrap: ["127.0.0.1:9"]}, west: {bootstrap: ["127.0.0.1:9"]}}
flows: [{name: east-west, from: east, to: west}]
"""
# Those that read topology files, as their usage says.
OF_CONNECT = {"connect-distributed", "connect-standalone"}
OWN = OF_CONNECT | {
    "mirror-maker",
    "mirror-maker2",
    "init",
    "schema",
    "demo",
    "sandbox",
    "version",
    "explain",
    "ci",
    "docs",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("ANABRANCH_FILE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def walked(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, below in getattr(command, "commands", {}).items():
        yield (*path, name), below
        yield from walked(below, (*path, name))


ALL = dict(walked(command_line()))


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    told = capsys.readouterr()
    return code, told.out, told.err


def test_every_command_is_in_one_group_with_a_summary_that_fits() -> None:
    assert sorted(SUMMARIES) == sorted(MODULES)
    assert sum(map(len, GROUPS.values())) == len(SUMMARIES)
    assert {(name, one) for name, below in BELOW.items() for one in below} == {path for path in ALL if path[1:]}
    every = [*SUMMARIES.values(), *(one for below in BELOW.values() for one in below.values())]
    assert [one for one in every if len(one) > LONGEST] == []


@pytest.mark.parametrize("columns", ["80", "200"])
def test_nothing_is_cut_off(columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    code, out, _ = said(capsys, "--help")
    assert code == 0
    assert "..." not in out.partition("Declare:")[2]
    for group, names in GROUPS.items():
        assert f"\n{group}:\n" in out
        for name, summary in names.items():
            assert re.search(rf"^  {name} +{re.escape(summary)}$", out, re.MULTILINE), name
    for name, below in BELOW.items():
        _, out, _ = said(capsys, name, "--help")
        assert all(re.search(rf"^  {one} +{re.escape(summary)}$", out, re.MULTILINE) for one, summary in below.items())


@pytest.mark.parametrize("path", [path for path in ALL if path[0] not in BELOW or path[1:]], ids=" ".join)
def test_values_have_plain_words(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, *path, "--help")
    assert code == 0
    assert not re.search(r"[{}]|\[\[|<list|range>|x>=|<=x|<str>|<path>|<float>|<int>", out), out


def test_files_are_those_of_the_folder_or_of_the_variable(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = said(capsys, "validate")
    assert (code, "name topology files, or set ANABRANCH_FILE: there is no anabranch.yaml here" in err) == (2, True)
    (folder / "anabranch.yaml").write_text(DECLARED)
    assert said(capsys, "validate")[:2] == (0, "both: 2 clusters, 1 flow: valid\n")
    assert said(capsys, "explain", "--topic", "orders")[0] == 0
    clusters, flows = folder / "clusters.yaml", folder / "flows.yaml"
    lines = DECLARED.replace("both", "other").splitlines(keepends=True)
    clusters.write_text("".join(lines[:3]))
    flows.write_text("version: 1\n" + lines[3])
    monkeypatch.setenv("ANABRANCH_FILE", os.pathsep.join(map(str, (clusters, flows))))
    assert said(capsys, "validate")[:2] == (0, "other: 2 clusters, 1 flow: valid\n")
    assert said(capsys, "validate", "anabranch.yaml")[:2] == (0, "both: 2 clusters, 1 flow: valid\n")
    monkeypatch.setenv("ANABRANCH_FILE", "none.yaml")
    code, _, err = said(capsys, "validate")
    assert (code, "none.yaml" in err) == (1, True)


def test_every_command_that_takes_files_takes_them_so() -> None:
    for path, command in ALL.items():
        files = [one for one in command.params if one.name == "files"]
        if path[0] in OWN or path in {(name,) for name in BELOW}:
            continue
        assert [one.required for one in files] == [False], path


@pytest.mark.parametrize("option", ["--format", "-o", "--output"])
def test_values_are_written_as_yaml_too(option: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "anabranch.yaml").write_text(DECLARED)
    assert main(["validate", option, "json"]) == 0
    as_json = json.loads(capsys.readouterr().out)
    assert main(["validate", option, "yaml"]) == 0
    out = capsys.readouterr().out
    assert YAML(typ="safe").load(out) == as_json
    assert not out.startswith("{")
    # The next command in the same process writes what it is asked for.
    assert main(["explain", "AB310", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["code"] == "AB310"


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, 2.5, None, True, "yes", "null", "1", "- x", "# x", "a: b", "", " "], "b": {}, "c": []},
        {"strange \x1b[31m\n\u202e key": "value\x00 \x7f é 𝄞\n\nend\n"},
        [("a", 1), ("b", 2)],
    ],
)
def test_yaml_reads_as_what_json_reads_as(value: Any) -> None:
    text = yaml_text(value)
    assert YAML(typ="safe").load(text) == json.loads(json.dumps(value))
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_whoever_writes_data_has_the_same_names_for_how() -> None:
    for path, command in ALL.items():
        for one in command.params:
            if "--format" in one.opts and path[0] != "schema":
                assert {"-o", "--output"} < set(one.opts), path
            if "--flow" in one.opts:
                assert "-f" in one.opts, path
            if "--watch" in one.opts:
                assert "-w" in one.opts, path


def test_the_version_is_a_command_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "version") == said(capsys, "--version")


def test_pages_of_the_documentation_are_listed_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "docs")
    assert code == 0
    assert re.search(r"^tutorial +Tutorial$", out, re.MULTILINE)
    assert re.search(r"^deploy +\S", out, re.MULTILINE)
    for line in out.splitlines():
        code, page, _ = said(capsys, "docs", line.split()[0])
        assert (code, page[:2]) == (0, "# "), line
    code, _, err = said(capsys, "docs", "statsu")
    assert (code, "did you mean status" in " ".join(err.split())) == (2, True)


def test_problems_as_json_are_not_on_stderr_as_well(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "anabranch.yaml").write_text(DECLARED.replace("flows:", "flow:"))
    code, out, err = said(capsys, "validate", "-o", "json")
    assert (code, json.loads(out)["valid"], err) == (1, False, "")


ASKING = {
    ("adopt",): ("--clusters", "west"),
    ("release",): ("--flow", "east-west", "--to", "mm2"),
    ("failover",): ("--flow", "east-west", "--only-forward"),
    ("failback",): ("--flow", "east-west"),
    ("offsets", "write"): ("--cluster", "east", "--group", "billing", "--topic", "a b", "--to", "7"),
    ("offsets", "import"): ("--from", "offsets.json"),
}

# These look at the clusters before: tests/integration/cli.
ASKING_BEHIND_A_PLAN = {("apply",), ("destroy",), ("recreate",)}


@pytest.mark.parametrize(("command", "options"), ASKING.items(), ids=map(" ".join, ASKING))
def test_a_question_without_a_terminal_is_refused_with_the_line_to_type(
    command: tuple[str, ...], options: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "anabranch.yaml").write_text(DECLARED)
    code, out, err = said(capsys, *command, *options)
    assert (code, out) == (2, "")
    assert "there is no terminal on which to confirm it [AB144]\n" in err
    assert err.endswith(f": {shlex.join(['anabranch', *command, *options, '--yes'])}\n")


def test_the_line_to_type_has_yes_before_what_are_no_options(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = said(capsys, "--verbose=cli", "failover", "--flow", "a", "--", "-x.yaml")
    assert err.endswith(": anabranch --verbose=cli failover --flow a --yes -- -x.yaml\n")


def test_each_command_that_asks_is_tried() -> None:
    asking = {path for path, command in ALL.items() if any("--yes" in one.opts for one in command.params)}
    assert asking == ASKING.keys() | ASKING_BEHIND_A_PLAN
