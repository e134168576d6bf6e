"""`anabranch ci init`: the pipelines of a forge, written where nothing is in their way."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from reconciler.cli.main import main
from reconciler.operate.pipelines import INCLUDE

ROOT = Path(__file__).parents[3]


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


SCRIPTS = {
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "ci").rglob("*")
    if path.is_file() and path.parent.name not in {"github", "gitlab", "__pycache__"}
}


def test_github_has_its_workflows_and_the_scripts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ci", "init", "github", str(tmp_path)]) == 0
    told = capsys.readouterr()
    workflows = {f".github/workflows/{path.name}" for path in (ROOT / "ci" / "github").glob("*.yml")}
    assert files(tmp_path) == SCRIPTS | workflows
    assert {line.removeprefix("wrote ") for line in told.out.splitlines()} == files(tmp_path)
    assert "anabranch.lock" in told.err
    for one in workflows:
        assert "jobs" in YAML(typ="safe").load((tmp_path / one).read_text())
    assert (tmp_path / "ci" / "install.sh").stat().st_mode & 0o111


def test_gitlab_includes_its_pipeline(tmp_path: Path) -> None:
    assert main(["ci", "init", "gitlab", str(tmp_path)]) == 0
    assert files(tmp_path) == SCRIPTS | {"ci/gitlab/anabranch.gitlab-ci.yml", ".gitlab-ci.yml"}
    (included,) = YAML(typ="safe").load(INCLUDE)["include"]
    assert (tmp_path / included["local"]).exists()


def test_it_may_be_run_again_and_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ci", "init", "github", str(tmp_path)]) == 0
    (tmp_path / "ci" / "scripts" / "plan.py").unlink()
    capsys.readouterr()
    assert main(["ci", "init", "github", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "wrote ci/scripts/plan.py\n"
    mine = tmp_path / ".github" / "workflows" / "anabranch-plan.yml"
    mine.write_text("name: mine\n")
    (tmp_path / "ci" / "scripts" / "drift.py").unlink()
    assert main(["ci", "init", "github", str(tmp_path)]) == 4
    assert f"{mine}: it is there already" in capsys.readouterr().err
    assert mine.read_text() == "name: mine\n"
    assert not (tmp_path / "ci" / "scripts" / "drift.py").exists()


def test_gitlabs_own_file_is_not_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = tmp_path / ".gitlab-ci.yml"
    own.write_text("stages: [build]\n")
    assert main(["ci", "init", "gitlab", str(tmp_path)]) == 0
    assert INCLUDE.splitlines()[1].strip() in capsys.readouterr().err
    assert own.read_text() == "stages: [build]\n"
    own.write_text("stages: [build]\n" + INCLUDE)
    assert main(["ci", "init", "gitlab", str(tmp_path)]) == 0
    assert "add to" not in capsys.readouterr().err


def test_a_folder_is_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ci", "init", "github", str(tmp_path / "none")]) == 2
    assert "is no folder" in capsys.readouterr().err
