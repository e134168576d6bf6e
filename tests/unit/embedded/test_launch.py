"""Children end with the process that started them and not with the thread that asked."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from pathlib import Path

from reconciler.embedded.launch import start_child

PARENT = """
import pathlib, sys
from reconciler.embedded.launch import start_child
child = start_child(["/bin/sh", "-c", "echo up; exec sleep 600"], pathlib.Path(sys.argv[1]))
print(child.pid, flush=True)
sys.stdin.read()
"""


def test_child_ends_when_its_parent_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path / "out")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        watch = os.pidfd_open(int(parent.stdout.readline()))
        try:
            _wait_for_output(tmp_path / "out")
            parent.kill()
            assert _has_ended(watch, seconds=20)
        finally:
            os.close(watch)


def test_child_outlives_the_thread_that_asked_for_it(tmp_path: Path) -> None:
    started: list[subprocess.Popen[bytes]] = []
    command = ["/bin/sh", "-c", "echo up; read line"]
    asking = threading.Thread(target=lambda: started.append(start_child(command, tmp_path / "out")))
    asking.start()
    asking.join()
    (child,) = started
    # `read` meets the end of its input at once: status 1 is the shell's own end, a signal would show as negative.
    assert child.wait(20) == 1
    assert (tmp_path / "out").read_text() == "up\n"


def test_child_has_a_session_of_its_own(tmp_path: Path) -> None:
    child = start_child(["/bin/sleep", "600"], tmp_path / "out")
    try:
        assert os.getsid(child.pid) == child.pid != os.getsid(0)
    finally:
        child.kill()
        child.wait(20)


def _wait_for_output(path: Path) -> None:
    while not path.exists() or not path.read_text():
        threading.Event().wait(0.01)


def _has_ended(watch: int, seconds: float) -> bool:
    return bool(select.select([watch], [], [], seconds)[0])
