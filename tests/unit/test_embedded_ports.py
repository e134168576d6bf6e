"""Port leases: distinct among processes and within one, given back when they end."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from reconciler.embedded import ports
from reconciler.embedded.ports import HOST, PortLease
from reconciler.model.errors import EnvironmentFault

TAKER = """
import sys
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
