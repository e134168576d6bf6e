"""Names of processes: a living one is never taken for gone, and an ended one is known for certain."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from reconciler.state.journals import process

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells enough of processes")


@pytest.fixture
def child() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)


def end(child: subprocess.Popen[bytes]) -> None:
    child.communicate(b"\n")


def test_the_living_are_not_gone(child: subprocess.Popen[bytes]) -> None:
    try:
        assert not process.is_gone(process.own_name())
        assert not process.is_gone(process.own_name(child.pid))
    finally:
        end(child)


def test_who_has_ended_is_gone(child: subprocess.Popen[bytes]) -> None:
    name = process.own_name(child.pid)
    end(child)
    assert process.is_gone(name)


def test_who_has_ended_and_waits_for_its_parent_is_gone(child: subprocess.Popen[bytes]) -> None:
    name = process.own_name(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        assert process.is_gone(name)
    finally:
        child.communicate()


def test_another_process_with_the_same_number_is_another() -> None:
    *where, number, started = process.own_name().split("/")
    assert process.is_gone("/".join([*where, number, str(int(started) - 1)]))


@pytest.mark.parametrize("field", range(3))
def test_processes_of_other_machines_boots_and_containers_are_never_gone(
    child: subprocess.Popen[bytes], field: int
) -> None:
    fields = process.own_name(child.pid).split("/")
    end(child)
    fields[field] += "x"
    assert not process.is_gone("/".join(fields))


@pytest.mark.parametrize("name", ["", "rdkafka", "a/b/c/1/2", "////", "host/boot/ns/one/2"])
def test_what_is_no_name_is_never_gone(name: str) -> None:
    assert not process.is_gone(name)
