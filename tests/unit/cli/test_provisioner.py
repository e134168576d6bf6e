"""Who carries a plan out: what the options say together, and what is no answer."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from reconciler.cli.provisioner import Provisioning, provisioning
from reconciler.model.base.errors import Refused
from stacks import project

FILES = (Path("payments.yaml"),)


@pytest.fixture(autouse=True)
def pulumi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `pulumi` on PATH, in a folder without a project."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pulumi").touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)


def test_a_folder_that_is_named_and_holds_no_project_is_no_reason_to_do_it_directly(tmp_path: Path) -> None:
    folder = tmp_path / "infra"
    with pytest.raises(typer.BadParameter, match="--provisioner pulumi makes one"):
        provisioning("auto", folder, FILES)
    assert provisioning("auto", None, FILES).project is None
    assert provisioning("pulumi", folder, FILES).project == folder
    project.ensure(folder, "shop")
    assert provisioning("auto", folder, FILES).project == folder


def test_a_stack_is_applied_whole(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"us-east.orders alone.*--provisioner direct.*AB440"):
        Provisioning(FILES, tmp_path).check_part(["us-east.orders"])
    Provisioning(FILES, tmp_path).check_part([])
    Provisioning(FILES).check_part(["us-east.orders"])
