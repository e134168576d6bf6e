"""The command line: exit codes, what goes to stdout and what to stderr, and the twelve broken files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from reconciler import __version__
from reconciler.cli import main as frame
from reconciler.cli.main import main
from reconciler.declare.documents.resources import examples, schema_text
from tests.unit.declare.declaring import HEAD

pytestmark = pytest.mark.slow

BROKEN = Path(__file__).parent / "broken"
ROOT = Path(__file__).parents[3]

# File, line and column, JSON path, code, and the remedy's beginning.
EXPECTED = {
    "unknown-cluster": (9, 44, "replication[0].fan-out.to[1]", "AB105", "did you mean ap-south?"),
    "cycle": (12, 5, "flows[2]", "AB107", "use policy default for one of these flows"),
    "unknown-key": (9, 5, "replication[0].fan-outt", "AB103", "did you mean fan-out?"),
    "bad-regex": (11, 29, "replication[0].topics.include[1]", "AB109", "correct the expression"),
    "duplicate-flow": (10, 5, "replication[1]", "AB106", "keep one of the two"),
    "identity-both-ways": (10, 5, "replication[1]", "AB108", "use policy default, disable one direction"),
    "empty-topics": (11, 16, "replication[0].topics.include", "AB113", "name topics, or leave include out"),
    "wrong-version": (1, 10, "version", "AB112", "set version: 1"),
    "syntax-error": (10, 10, "", "AB101", "look at what begins in line 9"),
    "malformed-reference": (10, 17, "clusters.us-east.security.password", "AB110", "for example: password: env:"),
    "not-a-mapping": (2, 1, "", "AB102", "start the file with version: 1"),
    "tabs": (5, 1, "", "AB101", "indent with spaces"),
}


class Result(NamedTuple):
    code: int
    stdout: str
    stderr: str


def anabranch(*arguments: str, stdin: str = "", **environment: str) -> Result:
    """Run the real command in a process of its own."""
    clean: Mapping[str, str] = {
        key: value for key, value in os.environ.items() if key not in ("ANABRANCH_DEBUG", "NO_COLOR", "FORCE_COLOR")
    }
    done = subprocess.run(
        [sys.executable, "-m", "reconciler.cli.main", *arguments],
        cwd=ROOT,
        env={**clean, **environment},
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> pytest.CaptureFixture[str]:
    """Run the command in this process; what it writes is captured."""
    return capsys


def run(here: pytest.CaptureFixture[str], *arguments: str) -> Result:
    code = main(arguments)
    out, err = here.readouterr()
    return Result(code, out, err)


def test_there_is_an_expectation_for_each_broken_file() -> None:
    assert {path.stem for path in BROKEN.glob("*.yaml")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_broken_file(name: str) -> None:
    line, column, path, code, remedy = EXPECTED[name]
    file = f"tests/unit/cli/broken/{name}.yaml"
    result = anabranch("validate", file)
    assert (result.code, result.stdout) == (1, "")
    first, second = result.stderr.splitlines()
    assert first.startswith(f"{file}:{line}:{column}: ")
    assert first.endswith(f" ({path}) [{code}]" if path else f" [{code}]")
    assert second.startswith(f"    → {remedy}")
    assert "Traceback" not in result.stderr
    assert "correct-horse" not in result.stderr


@pytest.mark.parametrize("command", ["replicate", "verify"])
def test_a_folder_that_cannot_be_made_is_named(here: pytest.CaptureFixture[str], tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "state"
    result = run(here, command, str(examples()["fan-out"]), "--state-dir", str(folder))
    assert (result.code, "--state-dir" in result.stderr, "Not a directory" in result.stderr) == (2, True, True)


@pytest.mark.parametrize(
    "options",
    [
        ("status", "--watch", "1e10"),
        ("apply", "--yes", "--max-lag", "nan"),
        ("apply", "--yes", "--wait", "nan"),
        ("apply", "--yes", "--patience", "-1"),
        ("apply", "--yes", "--allow-delete", f"topic={'9' * 5_000}"),
    ],
)
def test_numbers_without_sense_are_usage_errors(here: pytest.CaptureFixture[str], options: tuple[str, ...]) -> None:
    command, *rest = options
    assert run(here, command, str(examples()["fan-out"]), *rest).code == 2


def test_the_four_examples_are_valid(here: pytest.CaptureFixture[str]) -> None:
    said = {name: run(here, "validate", str(path)) for name, path in examples().items()}
    assert said == {
        "active-active": Result(0, "payments: 2 clusters, 2 flows: valid\n", ""),
        "aggregation": Result(0, "reporting: 3 clusters, 2 flows: valid\n", ""),
        "fan-out": Result(0, "price-lists: 3 clusters, 2 flows: valid\n", ""),
        "xdcr": Result(0, "shop: 4 clusters, 6 flows: valid\n", ""),
    }


def test_one_of_each_is_singular(here: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text(
        "version: 1\nname: one\nclusters: {a: {bootstrap: 'a:1'}}\nflows: [{from: a, to: a}]\n", encoding="utf-8"
    )
    assert run(here, "validate", str(path)).stdout == "one: 1 cluster, 1 flow: valid\n"


def test_json(here: pytest.CaptureFixture[str]) -> None:
    result = run(here, "validate", "--format", "json", str(examples()["active-active"]))
    value = json.loads(result.stdout)
    assert (value["name"], value["valid"], len(value["digest"])) == ("payments", True, 16)
    assert value["clusters"][0] == {"alias": "us-east", "datacenter": "dc1"}
    assert value["flows"][1] == {
        "name": "eu-west-us-east",
        "from": "eu-west",
        "to": "us-east",
        "enabled": True,
        "failed_over": False,
        "origin": "replication[0] (active-active)",
    }


def test_problems_of_invalid_files_are_json_too(here: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = run(here, "validate", "--format", "json", str(BROKEN / "unknown-cluster.yaml"))
    value = json.loads(result.stdout)
    assert (result.code, value["valid"]) == (1, False)
    (problem,) = value["problems"]
    assert problem["code"] == "AB105"
    assert problem["where"].endswith("unknown-cluster.yaml:9:44 (replication[0].fan-out.to[1])")
    assert set(problem) == {"code", "where", "message", "remedy"}
    assert result.stderr == ""
    path = tmp_path / "secure.yaml"
    path.write_text(SECURE, encoding="utf-8")
    result = run(here, "validate", "--resolve", "--format", "json", str(path))
    assert "/no/pw" in [one["message"] for one in json.loads(result.stdout)["problems"]][-1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["doctor", "--clusters", "nope"], "goes with topology files"),
        (["verify", "FILE", "--topics", ""], "names no topic"),
        (["verify", "FILE", "--topics", " , "], "names no topic"),
        (["replicate", "FILE", "--ledger-format", "parquet"], "goes with --ledger"),
        (["init", "-", "--cluster", "a=h:1", "--cluster", "b=h:2"], "expected a file"),
    ],
)
def test_options_that_would_do_nothing_are_errors(
    here: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = str(examples()["fan-out"])
    result = run(here, *(file if one == "FILE" else one for one in arguments))
    assert (result.code, result.stdout) == (2, "")
    assert said in result.stderr
    assert not (tmp_path / "-").exists()


def test_every_problem_of_every_file_is_told(here: pytest.CaptureFixture[str]) -> None:
    result = run(here, "validate", *(str(BROKEN / f"{name}.yaml") for name in ("tabs", "not-a-mapping", "bad-regex")))
    assert result.code == 1
    codes = [line[-6:-1] for line in result.stderr.splitlines() if not line.startswith("    →")]
    assert codes == ["AB101", "AB102", "AB109"]


def test_warnings_go_to_stderr(here: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "idle.yaml"
    path.write_text(HEAD + "flows: [{from: a, to: b}, {from: b, to: c}]\n", encoding="utf-8")
    result = run(here, "validate", str(path))
    assert (result.code, result.stdout) == (0, "shop: 4 clusters, 2 flows: valid\n")
    assert result.stderr == (
        f"{path}:7:3: warning: no flow names cluster d (clusters.d) [AB190]\n    → add a flow, or remove the cluster\n"
    )


def test_standard_input() -> None:
    text = examples()["fan-out"].read_text(encoding="utf-8")
    assert anabranch("validate", "-", stdin=text).stdout == "price-lists: 3 clusters, 2 flows: valid\n"
    assert anabranch("validate", "-", stdin="- x\n").stderr.startswith("<stdin>:1:1: ")


SECURE = """
version: 1
name: secure
clusters:
  a: {bootstrap: "a:1", security: {protocol: SASL_SSL, mechanism: PLAIN, username: u, password: "env:A_PW"}}
  b: {bootstrap: "b:1", security: {protocol: SASL_SSL, mechanism: PLAIN, username: u, password: "file:/no/pw"}}
flows: [{from: a, to: b}]
"""


def test_resolve_looks_every_reference_up(
    here: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secure.yaml"
    path.write_text(SECURE, encoding="utf-8")
    monkeypatch.delenv("A_PW", raising=False)
    assert run(here, "validate", str(path)).code == 0
    result = run(here, "validate", "--resolve", str(path))
    assert (result.code, result.stdout) == (1, "")
    assert result.stderr == (
        f"{path}:5:97: environment variable A_PW is not set (clusters.a.security.password) [AB304]\n    → set A_PW\n"
        f"{path}:6:97: cannot read /no/pw: No such file or directory (clusters.b.security.password) [AB304]\n"
        "    → create it or correct the path\n"
    )
    password = tmp_path / "pw"
    password.write_text("hunter2\n", encoding="utf-8")
    path.write_text(SECURE.replace("/no/pw", str(password)), encoding="utf-8")
    monkeypatch.setenv("A_PW", "hunter3")
    result = run(here, "validate", "--resolve", "--format", "json", str(path))
    assert result.code == 0
    assert "hunter" not in result.stdout + result.stderr


@pytest.mark.parametrize(
    "arguments", [[], ["validate"], ["nonsense"], ["validate", "--nonsense", "x"], ["graph", "--format", "png", "x"]]
)
def test_usage_errors(here: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    result = run(here, *arguments)
    assert result.code == 2
    assert "Usage: anabranch" in result.stdout + result.stderr


def test_version_schema_and_graph(here: pytest.CaptureFixture[str]) -> None:
    assert run(here, "--version") == Result(0, f"anabranch {__version__}\n", "")
    assert run(here, "schema") == Result(0, schema_text(), "")
    assert run(here, "graph", str(examples()["xdcr"])).stdout.startswith("shop · 4 clusters, 6 flows\n\nwest\n")
    chart = run(here, "graph", "--format", "mermaid", str(examples()["xdcr"]))
    assert chart.stdout.startswith("flowchart LR\n")


def test_lines_are_not_wrapped_where_nobody_looks() -> None:
    result = anabranch("graph", "topology/examples/xdcr.yaml", COLUMNS="20")
    assert max(map(len, result.stdout.splitlines())) > 60


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
)
def test_colour_is_for_terminals_and_never_with_no_color(environment: dict[str, str], coloured: bool) -> None:
    result = anabranch("validate", "tests/unit/cli/broken/tabs.yaml", **environment)
    assert ("\x1b[31m" in result.stderr) is coloured


def test_names_are_never_read_as_markup(here: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "markup.yaml"
    path.write_text(HEAD + "flows: [{from: '[red]a[/red]', to: b}]\n", encoding="utf-8")
    assert "found '[red]a[/red]', declared" in run(here, "validate", str(path)).stderr


def test_an_unforeseen_error_is_short_and_its_traceback_for_who_asks(
    here: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_app: object) -> None:
        message = "nobody thought of this"
        raise ValueError(message)

    monkeypatch.setattr(frame, "get_command", fail)
    monkeypatch.delenv("ANABRANCH_DEBUG", raising=False)
    assert run(here, "schema") == Result(
        1,
        "",
        "unexpected ValueError: nobody thought of this\n    → set ANABRANCH_DEBUG=1 for the traceback and report it\n",
    )
    monkeypatch.setenv("ANABRANCH_DEBUG", "1")
    assert "Traceback" in run(here, "schema").stderr


def test_an_interrupt_ends_with_130(here: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("reconciler.declare.load", interrupt)
    assert run(here, "validate", "x.yaml") == Result(130, "", "")


def test_a_reader_that_goes_away_is_no_error_worth_words() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "reconciler.cli.main", "schema"],
            cwd=ROOT,
            stdout=closed,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (1, b"")


def test_commands_that_only_read_files_import_no_heavy_room() -> None:
    # `rfc3987_syntax` is one that jsonschema would import.
    heavy = "pyspark", "kafka", "confluent_kafka", "pulumi", "pyarrow", "rich.console", "rfc3987_syntax", "lark"
    code = (
        "import sys; from reconciler.cli.main import main; main(['validate', 'topology/examples/xdcr.yaml']); "
        f"print([name for name in {heavy} if sys.modules.get(name)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_what_needs_no_command_imports_none(argument: str) -> None:
    code = (
        "import sys; from reconciler.cli.main import main; main([sys.argv[1]]); "
        "print([name for name in sys.modules if name.startswith(('reconciler.declare', 'reconciler.plan', 'rich', "
        "'reconciler.model.declared', 'reconciler.observe', 'reconciler.cli.look.status', 'ruamel', 'jsonschema'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, argument], cwd=ROOT, capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", [["plan"], ["apply", "--yes"], ["destroy", "--yes"], ["drift"], ["adopt", "--yes"]])
@pytest.mark.parametrize("named", ["", " ", ","])
def test_clusters_that_name_none_are_a_mistake_and_not_nothing_to_do(
    command: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([command[0], str(ROOT / "topology/examples/xdcr.yaml"), *command[1:], "--clusters", named])
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert "it names no cluster; there are" in said.err
