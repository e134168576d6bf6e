"""Units written, started, replaced and removed, by a stand-in for systemctl; and what a machine lacks for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.deploy.systemd import SystemdDeployer
from reconciler.model.planning.deployments import Process
from tests.support.deploying import FILE, LIVES, PROCESS, interpreter
from tests.support.programs import write_program
from tests.support.waiting import eventually

FAKE = Path(__file__).parents[2] / "support" / "fake_systemctl.py"


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SystemdDeployer]:
    (tmp_path / "state").mkdir()
    program = f'#!/bin/sh\nexec {sys.executable} -I -S {FAKE} "$@"\n'
    write_program(tmp_path / "bin" / "systemctl", program)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("FAKE_SYSTEMD", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = SystemdDeployer(tmp_path / "dc1", "user")
    made.folder.make()
    made.folder.write_files([FILE])
    yield made
    made.end(made.folder.generations())


def process(folder: Path, **fields: object) -> Process:
    made = replace(PROCESS, kind="systemd", folder=str(folder / "dc1"), python=interpreter(folder, LIVES))
    return replace(made, **{"limits": (("scope", "user"),), **fields})  # type: ignore[arg-type]


def asked(folder: Path) -> list[str]:
    return (folder / "state" / "asked").read_text().splitlines()


def units(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "config" / "systemd" / "user").iterdir())


def test_a_process_is_a_unit_that_starts_with_the_machine(tmp_path: Path, user: SystemdDeployer) -> None:
    user.begin(process(tmp_path))
    assert asked(tmp_path) == ["daemon-reload", "enable --now anabranch-shop-dc1-replicate@1.service"]
    assert units(tmp_path) == ["anabranch-shop-dc1-replicate@.service"]
    found = user.found()["replicate"]
    assert (found.is_running, found.pid > 0, found.why) == (True, True, "")


def test_one_takes_the_place_of_another_and_the_last_one_takes_the_unit_along(
    tmp_path: Path, user: SystemdDeployer
) -> None:
    old = user.begin(process(tmp_path))
    new = user.begin(process(tmp_path, version="0.2.0"))
    assert (new.number, user.found()["replicate"].generations) == (2, 2)
    user.end([old])
    found = user.found()["replicate"]
    assert (found.process.version, found.generations, found.is_running) == ("0.2.0", 1, True)
    assert units(tmp_path) == ["anabranch-shop-dc1-replicate@.service"]
    user.end([new])
    assert (units(tmp_path), user.found()) == ([], {})
    stops = [line for line in asked(tmp_path) if line.startswith("disable")]
    assert stops == [f"disable --now anabranch-shop-dc1-replicate@{number}.service" for number in (1, 2)]


def test_a_unit_that_ended_is_told(tmp_path: Path, user: SystemdDeployer) -> None:
    user.begin(process(tmp_path, python=interpreter(tmp_path, "#!/bin/sh\nexit 3\n", "dies")))
    found = eventually("it has ended", lambda: user.found()["replicate"], lambda found: not found.is_running)
    assert found.why == "failed (dead): exit-code"


def test_what_is_missing_is_told_before(tmp_path: Path, user: SystemdDeployer, monkeypatch: pytest.MonkeyPatch) -> None:
    needs = process(tmp_path, variables=("A_PW", "B_PW"))
    (problem,) = user.objections([needs])
    assert (problem.code, problem.message) == ("AB763", "A_PW, B_PW of replicate is in no environment file")
    file = tmp_path / "dc1.env"
    with_file = replace(needs, limits=(("scope", "user"), ("environment-file", str(file))))
    (problem,) = user.objections([with_file])
    assert f"the environment file {file} cannot be read" in problem.message
    file.write_text("# secrets\nA_PW=hunter2\nB_PW=\n")
    (problem,) = user.objections([with_file])
    assert problem.message == "B_PW of replicate is in no environment file"
    file.write_text("A_PW=hunter2\nB_PW=x\n")
    assert user.objections([with_file]) == []
    (problem,) = SystemdDeployer(tmp_path / "dc1", "system").objections(
        [process(tmp_path, limits=(("scope", "system"), ("user", "no-such-user")))]
    )
    assert (problem.code, problem.message) == ("AB763", "there is no user no-such-user")
    with monkeypatch.context() as without:
        without.setenv("PATH", str(tmp_path / "nowhere"))
        (problem,) = user.objections([needs])
    assert (problem.code, problem.message) == ("AB765", "there is no systemctl")
