"""Port leases: distinct among processes and within one, given back when they end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from reconciler.embedded import ports
from reconciler.embedded.ports import HOST, PortLease
from reconciler.model.base.errors import EnvironmentFault

TAKER = """
import sys
import tempfile
from reconciler.embedded import ports
ports.PORTS = range(20000, 20400)
lease = ports.PortLease.take(60)
print(*lease.ports, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def own_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_processes_get_distinct_ports() -> None:
    takers = [
        subprocess.Popen([sys.executable, "-c", TAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    try:
        taken = [int(port) for taker in takers if taker.stdout for port in taker.stdout.readline().split()]
    finally:
        for taker in takers:
            taker.kill()
            taker.communicate()
    assert len(taken) == 4 * 60
    assert len(set(taken)) == len(taken)


def test_leases_of_a_killed_process_are_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    taker = subprocess.Popen([sys.executable, "-c", TAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert taker.stdout is not None
    held = int(taker.stdout.readline().split()[0])
    monkeypatch.setattr(ports, "PORTS", range(held, held + 1))
    with pytest.raises(EnvironmentFault) as caught:
        PortLease.take(1)
    assert caught.value.problems[0].code == "AB305"
    taker.kill()
    taker.communicate()
    assert PortLease.take(1).ports == (held,)


def test_released_ports_can_be_leased_again(monkeypatch: pytest.MonkeyPatch) -> None:
    lease = PortLease.take(3)
    few = range(min(lease.ports), min(lease.ports) + 1)
    monkeypatch.setattr(ports, "PORTS", few)
    with pytest.raises(EnvironmentFault) as caught:
        PortLease.take(1)
    assert caught.value.problems[0].code == "AB305"
    lease.release()
    assert PortLease.take(1).ports == tuple(few)


def test_port_that_another_program_listens_on_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        busy = other.getsockname()[1]
        monkeypatch.setattr(ports, "PORTS", range(busy, busy + 1))
        with pytest.raises(EnvironmentFault) as caught:
            PortLease.take(1)
    assert caught.value.problems[0].code == "AB305"


def test_a_folder_that_another_prepared_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    cache = tmp_path / "cache"
    monkeypatch.setenv("ANABRANCH_CACHE", str(cache))
    prepared = tmp_path / "prepared" / "ports"
    prepared.mkdir(parents=True)
    for port in range(20000, 20010):
        (prepared / str(port)).symlink_to(victim)
    monkeypatch.setattr(ports, "PORTS", range(20000, 20010))
    temporary = tmp_path / f"anabranch-{os.getuid()}"
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    temporary.symlink_to(prepared.parent)
    PortLease.take(1).release()
    assert (cache / "run" / "ports").stat().st_mode & 0o777 == 0o700
    temporary.unlink()
    # A folder of ours, with links in it from a time when others could write there: those ports cannot be locked.
    prepared.parent.rename(temporary)
    temporary.chmod(0o777)
    with pytest.raises(EnvironmentFault, match="AB305"):
        PortLease.take(1)
    assert temporary.stat().st_mode & 0o777 == 0o700
    assert victim.read_text() == "precious"


def test_another_users_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANABRANCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    theirs = tmp_path / "temporary" / f"anabranch-{os.geteuid()}"
    theirs.mkdir(parents=True)
    if os.geteuid() == 0:
        os.chown(theirs, 12345, 12345)
        monkeypatch.setattr(ports, "PORTS", range(20000, 20100))
        PortLease.take(1).release()
        assert list(theirs.iterdir()) == []
        assert (tmp_path / "cache" / "run" / "ports").is_dir()
    else:
        PortLease.take(1).release()
        assert theirs.stat().st_mode & 0o777 == 0o700


def test_locks_are_those_of_this_user_alone(tmp_path: Path) -> None:
    lease = PortLease.take(1)
    try:
        assert (tmp_path / "anabranch").stat().st_mode & 0o777 == 0o700
        assert {path.stat().st_mode & 0o777 for path in (tmp_path / "anabranch" / "ports").iterdir()} == {0o600}
    finally:
        lease.release()
