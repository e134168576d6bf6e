"""Commands that take too long are killed with all that they have started: what is left behind starves other tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.commands.command import run_to_its_end
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

# A child in a session of its own, as `replicate` is one for `demo`.
_PROGRAM = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(10_000)"], start_new_session=True)
open(sys.argv[1], "w").write(str(child.pid))
time.sleep(10_000)
"""


def test_what_takes_too_long_leaves_no_process_behind(tmp_path: Path) -> None:
    said = tmp_path / "child"
    with pytest.raises(subprocess.TimeoutExpired):
        run_to_its_end([sys.executable, "-c", _PROGRAM, str(said)], 10.0)
    child = int(said.read_text())
    eventually("the child has ended", lambda: _is_running(child), lambda found: not found)


def test_what_ends_by_itself_has_its_streams_and_its_code() -> None:
    ended = run_to_its_end([sys.executable, "-c", "import sys; print(1); print(2, file=sys.stderr); sys.exit(3)"], 300)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "1\n", "2\n")


def _is_running(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
