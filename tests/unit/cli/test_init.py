"""`init`: a first file from flags or answers, which declares what was said, and never over another file."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler import declare
from reconciler.cli.main import main
from reconciler.declare.documents.resources import schema_text

TWO = ("--cluster", "us-east=b1:9092,b2:9092", "--cluster", "eu-west=b3:9092")
THREE = (*TWO, "--cluster", "ap=b4:9092")
USAGE = 2


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "My Payments"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


def flows(path: Path) -> list[str]:
    return [f"{flow.source}→{flow.target}" for flow in declare.load((path,)).flows]


def test_two_clusters_are_a_flow(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", *TWO, "--topics", "orders.*", "--topics", "users"]) == 0
    path = folder / "anabranch.yaml"
    topology = declare.load((path,))
    assert topology.name == "my-payments"
    assert topology.clusters["us-east"].bootstrap == ("b1:9092", "b2:9092")
    assert topology.flows[0].topics.include == ("orders.*", "users")
    assert flows(path) == ["us-east→eu-west"]
    assert capsys.readouterr() == (
        "",
        "wrote anabranch.yaml: 2 clusters, 1 flow; next: anabranch plan\n",
    )
    assert path.read_text().startswith("# yaml-language-server: $schema=anabranch.schema.json\n")
    assert (folder / "anabranch.schema.json").read_text() == schema_text()
    assert "# Validate, then look at what it would do:\n#   anabranch validate anabranch.yaml\n" in path.read_text()
    (folder / "anabranch.schema.json").write_text("{}")
    assert main(["init", "other.yaml", *TWO]) == 0
    assert (folder / "anabranch.schema.json").read_text() == "{}", "one that is there stays"
    # How to go on with security is said where it belongs, and what is said would be accepted.
    lines = [line.replace("# ", "") for line in path.read_text().splitlines() if "anabranch" not in line]
    secured = folder / "secured.yaml"
    secured.write_text("\n".join(line for line in lines if not line.startswith(("Validate", "The line", "#"))))
    assert declare.load((secured,)).clusters["us-east"].security.username == "mirror"


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("fan-out", ["us-east→eu-west", "us-east→ap"]),
        ("aggregation", ["eu-west→us-east", "ap→us-east"]),
        (
            "active-active",
            ["us-east→eu-west", "us-east→ap", "eu-west→us-east", "eu-west→ap", "ap→us-east", "ap→eu-west"],
        ),
    ],
)
def test_more_clusters_form_a_pattern(folder: Path, shape: str, expected: list[str]) -> None:
    assert main(["init", "shop.yaml", *THREE, "--shape", shape, "--name", "shop"]) == 0
    assert sorted(flows(folder / "shop.yaml")) == sorted(expected)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), USAGE, "two or more clusters are needed, 0 given"),
        (TWO[:2], USAGE, "two or more clusters are needed, 1 given"),
        ((*TWO, *TWO[:2]), USAGE, "us-east is given twice"),
        (("--cluster", "b1:9092", *TWO), USAGE, "expected ALIAS=HOST:PORT,...; found 'b1:9092'"),
        (THREE, USAGE, "choose fan-out"),
        ((*TWO, "--name", "No Name"), 1, "[AB104]"),
        ((*TWO, "--topics", "a("), 1, "[AB109]"),
        (("--cluster", "a b=x:1", *TWO[2:]), 1, "[AB104]"),
        (("--cluster", "a=x:y", *TWO[2:]), 1, "[AB104]"),
        (("--cluster", "a b=x:1", *TWO[2:]), 1, 'clusters["a b"]: expected a name of letters, digits, _ and -'),
    ],
)
def test_what_cannot_be_is_told_and_leaves_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, said: str
) -> None:
    assert main(["init", *arguments]) == code
    assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert list(folder.iterdir()) == []


def test_a_file_that_is_there_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "anabranch.yaml"
    path.write_text("mine")
    assert main(["init", *TWO]) == 1
    assert "[AB184]" in capsys.readouterr().err
    assert path.read_text() == "mine"


def test_a_folder_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "missing/file.yaml", *TWO]) == 1
    assert "[AB180]" in capsys.readouterr().err


def test_on_a_terminal_it_asks(folder: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-m", "reconciler.cli.main", "init"]
        with subprocess.Popen(
            command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
        ) as process:
            answers = ("a=h1", "nonsense", "eu west=h2", "b=h2:x", "a=h2", "b=h2:2", "", "ring", "active-active")
            os.write(ours, "\n".join([*answers, "orders(", "orders, users.*", "y", ""]).encode())
            stdout, stderr = process.communicate(timeout=60)
    finally:
        os.close(ours)
        os.close(theirs)
    assert (process.returncode, stdout) == (0, ""), stderr
    assert "expected ALIAS=HOST:PORT,...; found 'nonsense'" in stderr
    for told in (
        "expected a name of letters, digits, _ and -",
        "expected host:port",
        "a is given already",
        "fan-out (first to all others)",
        "expected flow, fan-out, aggregation, active-active; found ring",
        "orders(",
    ):
        assert told in stderr
    assert "anabranch.yaml:" not in stderr.replace("wrote anabranch.yaml:", "")
    assert flows(folder / "anabranch.yaml") == ["a→b", "b→a"]
    topology = declare.load((folder / "anabranch.yaml",))
    assert topology.clusters["a"].addresses == ("h1:9092",)
    assert topology.flows[0].topics.include == ("orders", "users.*")
    assert topology.clusters["b"].security.password is not None


@pytest.mark.parametrize(
    ("said", "address"),
    [("b1", "b1:9092"), ("b1:9093", "b1:9093"), ("[::1]", "[::1]:9092"), ("[::1]:9", "[::1]:9"), ("env:B", "env:B")],
)
def test_kafkas_own_port_is_taken_where_none_is_said(folder: Path, said: str, address: str) -> None:
    assert main(["init", "--cluster", f"a={said}", *TWO[2:], "--secured"]) == 0
    text = (folder / "anabranch.yaml").read_text()
    assert f'bootstrap: ["{address}"]' in text.replace("'", '"').replace(f"[{address}]", f'["{address}"]')
    assert "password: env:A_PASSWORD" in text
