"""Every code that the program can show is explained, and no other; `explain` tells what stands there."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from reconciler.cli.main import main
from reconciler.declare.documents.resources import DOCS, errors_text
from reconciler.report.error_codes import entries

ROOT = Path(__file__).parents[3]
PAGE = """\
# Error codes

Every error has a code.

# What was declared

Codes of files, each
with its **place**:

```
payments.yaml:9:44: expected [AB105]
```

## AB100
It is `a: b` or `c. d`, see [that](x.md#y): more
words ([further](x.md)), or ([AB190](#ab190)).

- Do this.

## Warnings

They change
nothing.

## AB190
No stop

# Locks

## AB501
Somebody else. Wait.
"""


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["explain", *arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_every_code_is_explained() -> None:
    sources = [*ROOT.glob("reconciler/**/*.py"), *ROOT.glob("stacks/*.py")]
    used = {code for path in sources for code in re.findall(r'"(AB\d{3})"', path.read_text(encoding="utf-8"))}
    page = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
    explained = re.findall(r"^## (AB\d{3})$", page, re.MULTILINE)
    assert len(explained) == len(set(explained))
    assert used == set(explained)


def test_the_page_is_taken_apart_into_its_entries() -> None:
    found = entries(PAGE)
    assert list(found) == ["AB100", "AB190", "AB501"]
    first, warning, lock = found.values()
    assert (first.chapter, first.preface) == ("What was declared", "Codes of files, each with its place.")
    assert first.paragraphs == ("It is `a: b` or `c. d`, see that: more words, or (AB190).", "- Do this.")
    assert first.meaning == "It is `a: b` or `c. d`, see that"
    assert (warning.chapter, warning.preface, warning.meaning) == ("Warnings", "They change nothing.", "No stop")
    assert (lock.chapter, lock.preface, lock.meaning) == ("Locks", "", "Somebody else")


def test_every_entry_says_something_in_one_line() -> None:
    for code, entry in entries(errors_text()).items():
        assert entry.paragraphs, code
        assert 10 < len(entry.meaning) < 200, code
        assert "\n" not in entry.meaning
        assert entry.meaning.count("`") % 2 == 0, code
        assert entry.preface, code
        assert not re.search(r"\]\(|\*\*", entry.told()["text"]), code


def test_chapters_say_the_exit_codes_of_their_codes() -> None:
    found = entries(errors_text())
    assert {entry.code for entry in found.values() if "Exit code 4" in entry.preface} == {
        code for code in found if code.startswith("AB4")
    }
    assert {entry.code for entry in found.values() if "Exit code 5" in entry.preface} == {
        code for code in found if code.startswith("AB5")
    }


def test_one_code_is_told_with_what_it_means_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "AB407")
    assert (code, err) == (0, "")
    assert out == (
        "AB407  Guardrails\n"
        "Exit code 4: nothing was changed.\n"
        "\n"
        "The clusters changed while the plan was read, or since the plan file was\n"
        "written: each difference is told, with what it was and what it is. Run `apply`\n"
        "again and read the new plan, or make the plan file again. `failover` and\n"
        "`failback` say it where somebody else has gone on with the flow meanwhile: run\n"
        "them again.\n"
    )
    page = " ".join(re.findall(r"^## AB407\n(.*?)^#", errors_text(), re.MULTILINE | re.DOTALL)[0].split())
    assert " ".join(out.split()).endswith(page)


def test_several_codes_in_any_case(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "ab412", "AB501")
    assert code == 0
    assert re.findall(r"^AB\d+", out, re.MULTILINE) == ["AB412", "AB501"]
    code, out, _ = said(capsys, "AB412", "--format", "json")
    (told,) = json.loads(out)
    assert (told["code"], told["chapter"]) == ("AB412", "Guardrails")
    assert told["meaning"] == "A plan file was made from another version of the topology files"


def test_all_codes_have_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "--codes")
    lines = out.splitlines()
    assert code == 0
    assert [line[:5] for line in lines] == list(entries(errors_text()))
    assert "AB404  A topic that is declared with `required: true` does not exist at the source" in lines
    _, out, _ = said(capsys, "--codes", "--format", "json")
    assert [one["code"] for one in json.loads(out)] == [line[:5] for line in lines]


def test_an_unknown_code_is_told_and_where_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "AB999")
    assert (code, out) == (2, "")
    assert "there is no code AB999; `anabranch explain --codes` lists all" in err
    assert "near" not in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name topology files, or set ANABRANCH_FILE: there is no anabranch.yaml here"),
        (["AB407", "payments.yaml"], "either files, or codes, or --codes"),
        (["--codes", "AB407"], "either files, or codes, or --codes"),
        (["AB407", "--acls"], "codes go with --format text or json alone"),
        (["AB407", "--format", "commands"], "codes go with --format text or json alone"),
        (["--codes", "--topic", "orders"], "codes go with --format text or json alone"),
    ],
)
def test_codes_and_files_are_not_mixed(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())


def test_a_file_that_is_called_like_a_code_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "AB407").write_text("version: 2\n")
    code, _, err = said(capsys, "AB407")
    assert code == 1
    assert "[AB112]" in err


def test_the_wheel_carries_the_page() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    carried = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert carried[DOCS] == f"reconciler/_data/{DOCS}"
