"""`anabranch fmt`: one style, with the same meaning and the same comments, and what is in style stays as it is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.cli.main import main
from reconciler.declare.documents.reader import parse
from reconciler.declare.documents.resources import examples
from reconciler.declare.formatting import formatted
from reconciler.declare.rewrite import in_style, yaml_text

UGLY = """\
# What this is.
version:   1
name: 'shop'


clusters:
    east: {bootstrap: ["127.0.0.1:9"]}   # the first
    west:
        bootstrap:
        - "127.0.0.1:9"
flows:
- from: east
  to: west\t

"""
PRETTY = """\
# What this is.
version: 1
name: 'shop'

clusters:
  east: {bootstrap: ["127.0.0.1:9"]}     # the first
  west:
    bootstrap:
      - "127.0.0.1:9"
flows:
  - from: east
    to: west
"""
COMMENT = re.compile(r"#.*")


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_file_is_written_in_style_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(UGLY.replace("\t", ""))
    file.chmod(0o640)
    assert said(capsys, "fmt", "--check", str(file)) == (3, f"{file}\n", "")
    assert said(capsys, "fmt", str(file)) == (0, f"{file}\n", "")
    assert file.read_text() == PRETTY
    assert file.stat().st_mode & 0o777 == 0o640
    assert said(capsys, "fmt", str(file)) == (0, "", "")
    assert said(capsys, "fmt", "--check", str(file)) == (0, "", "")
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_one(tmp_path: Path) -> None:
    file, link = tmp_path / "shop.yaml", tmp_path / "link.yaml"
    file.write_text(UGLY.replace("\t", ""))
    link.symlink_to(file)
    assert main(["fmt", str(link)]) == 0
    assert (link.is_symlink(), file.read_text()) == (True, PRETTY)


def test_nothing_is_written_where_one_file_is_broken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(UGLY.replace("\t", ""))
    bad.write_text("version: [1\n")
    code, out, err = said(capsys, "fmt", str(good), str(bad))
    assert (code, out) == (1, "")
    assert "bad.yaml:" in err
    assert "[AB101]" in err
    assert good.read_text() == UGLY.replace("\t", "")


def test_what_cannot_be_in_style_with_the_same_meaning_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.declare.formatting.in_style", lambda text: text.replace("shop", "other"))
    file = tmp_path / "shop.yaml"
    text = UGLY.replace("\t", "")
    file.write_text(text)
    code, _, err = said(capsys, "fmt", str(file))
    assert (code, "[AB132]" in err, file.read_text()) == (1, True, text)


@pytest.mark.parametrize("name", sorted(examples()))
def test_the_examples_keep_their_meaning_and_comments(name: str) -> None:
    before, after = formatted(examples()[name])
    assert root(before) == root(after)
    assert [one.strip() for one in COMMENT.findall(before)] == [one.strip() for one in COMMENT.findall(after)]
    assert in_style(after) == after


TEXT = st.text(alphabet=st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]), max_size=30)
VALUES = st.recursive(
    TEXT | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT.filter(bool), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abcdef"), VALUES, min_size=1), st.booleans())
def test_whatever_is_written_reads_as_the_same(value: dict[str, object], flow: bool) -> None:
    text = json.dumps(value) if flow else yaml_text(value)
    if parse("x", text).document is not None:
        assert root(in_style(text)) == root(text)


def root(text: str) -> object:
    document = parse("x", text).document
    assert document is not None
    return document.value
