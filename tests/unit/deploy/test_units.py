"""Units of systemd: as systemd itself reads them, and as it is asked to start and stop them."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.deploy.units import instance, quoted, template_name, unit
from reconciler.model.planning.deployments import Process
from tests.support.deploying import PROCESS

SYSTEM = (("scope", "system"), ("user", "daemon"), ("environment-file", "/etc/hostname"))
USER = (("scope", "user"), ("memory", "4000000000"), ("cpus", "1.5"))


def of(limits: tuple[tuple[str, str], ...], folder: Path) -> Process:
    return replace(PROCESS, kind="systemd", folder=str(folder), python="/bin/sh", limits=limits)


def test_a_unit_starts_the_process_for_ever_and_gets_what_is_declared(tmp_path: Path) -> None:
    text = unit(of(USER, tmp_path), tmp_path, tmp_path / "state")
    lines = text.splitlines()
    assert (
        f"ExecStart=/bin/sh -m reconciler.cli.main replicate {tmp_path}/topology/shop.yaml --clusters b --wait=forever"
        f" --state-dir {tmp_path}/state"
    ) in lines
    assert {"Restart=always", "StartLimitIntervalSec=0", "MemoryMax=4000000000", "CPUQuota=150%"} <= set(lines)
    assert {"NoNewPrivileges=yes", "WantedBy=default.target"} <= set(lines)
    assert "ProtectSystem=strict" not in lines
    system = unit(of(SYSTEM, tmp_path), tmp_path, tmp_path / "state").splitlines()
    assert {"User=daemon", "EnvironmentFile=/etc/hostname", "ProtectSystem=strict"} <= set(system)
    assert {f"ReadWritePaths={tmp_path}/state", "WantedBy=multi-user.target"} <= set(system)


def test_names_tell_topology_data_centre_process_and_generation() -> None:
    assert template_name(PROCESS) == "anabranch-shop-dc1-replicate"
    assert instance(PROCESS, 3) == "anabranch-shop-dc1-replicate@3.service"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("plain/word-1,2", "plain/word-1,2"),
        ("a b", '"a b"'),
        ("100%", '"100%%"'),
        ("$HOME", '"$$HOME"'),
        ('say "x"\\', '"say \\"x\\"\\\\"'),
        ("", '""'),
    ],
)
def test_words_reach_a_process_as_they_are(word: str, said: str) -> None:
    assert quoted(word) == said


@pytest.mark.parametrize("limits", [SYSTEM, USER], ids=["system", "user"])
def test_systemd_takes_them(limits: tuple[tuple[str, str], ...], tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("there is no systemd-analyze here")
    path = tmp_path / instance(PROCESS, 1)
    path.write_text(unit(of(limits, tmp_path), tmp_path, tmp_path))
    command = [program, "verify", "--man=no", "--recursive-errors=no", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    path.write_text(path.read_text().replace("Restart=always", "Restrat=always"))
    wrong = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert "Restrat" in wrong.stderr
