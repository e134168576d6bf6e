"""The folder of a Pulumi project: how it is found, how it is made, and what was there before."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from reconciler.model.base.errors import DeclaredInputError
from stacks import program, project

ROOT = Path(__file__).resolve().parents[3]


def test_a_project_that_apply_has_made_runs_the_same_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Path] = []
    monkeypatch.setattr(program, "run", started.append)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert project.ensure(tmp_path / "pulumi", "shop")
    assert project.is_ours(tmp_path / "pulumi")
    assert not project.ensure(tmp_path / "pulumi", "shop"), "it is there already"
    named = (tmp_path / "pulumi" / "Pulumi.yaml").read_text()
    assert named == (ROOT / "Pulumi.yaml").read_text().replace("name: anabranch\n", "name: anabranch-shop\n")
    assert len(project.project_name("shop" * 99)) == 100
    runpy.run_path(str(tmp_path / "pulumi" / "stacks"), run_name="__main__")
    assert started == [tmp_path / "pulumi"]


def test_what_git_ignores_already_stays(tmp_path: Path) -> None:
    ignored = tmp_path / ".gitignore"
    ignored.write_text("secrets/\n.env")
    assert project.ensure(tmp_path, "shop")
    assert ignored.read_text() == "secrets/\n.env\nstacks/observed/\n"
    (tmp_path / "Pulumi.yaml").unlink()
    assert project.ensure(tmp_path, "shop")
    assert ignored.read_text() == "secrets/\n.env\nstacks/observed/\n"


def test_a_project_that_was_half_made_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put = project._put

    def killed(path: Path, text: str) -> None:
        if path.name == when:
            raise KeyboardInterrupt
        put(path, text)

    for when in ("__main__.py", ".gitignore", "Pulumi.yaml"):
        monkeypatch.setattr(project, "_put", killed)
        with pytest.raises(KeyboardInterrupt):
            project.ensure(tmp_path / when, "shop")
        monkeypatch.setattr(project, "_put", put)
        assert project.ensure(tmp_path / when, "shop")
        assert project.is_ours(tmp_path / when)
    (tmp_path / "else" / "stacks").mkdir(parents=True)
    (tmp_path / "else" / "stacks" / "__main__.py").write_text("print('of somebody else')")
    with pytest.raises(DeclaredInputError, match="AB372"):
        project.ensure(tmp_path / "else", "shop")


def test_where_the_project_is(tmp_path: Path) -> None:
    assert project.default_folder(ROOT) == ROOT
    assert project.default_folder(tmp_path) == tmp_path / "pulumi"
    (tmp_path / "Pulumi.yaml").write_text("name: of-somebody-else")
    assert not project.is_ours(tmp_path)
    with pytest.raises(DeclaredInputError, match="AB372"):
        project.ensure(tmp_path, "shop")
    (tmp_path / "file").write_text("")
    with pytest.raises(DeclaredInputError, match=r"cannot be written.*AB372"):
        project.ensure(tmp_path / "file" / "below", "shop")
