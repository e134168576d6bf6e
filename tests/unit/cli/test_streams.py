"""Commands whose stdin, stdout or stderr is closed or full: as cron, services and full disks have them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
COMMAND = f"{sys.executable} -m reconciler.cli.main"


def shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f"{COMMAND} {line}"], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("closed", [">&-", "<&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_as_good_as_one_that_nobody_reads(closed: str) -> None:
    for line, code in (("schema", 0), ("validate topology/examples/xdcr.yaml", 0), ("validate nowhere.yaml", 1)):
        ended = shell(f"{line} {closed}")
        assert ended.returncode == code, ended
        assert "Traceback" not in ended.stderr
        assert bool(ended.stdout) == (code == 0 and ">&-" not in closed.split())
        assert ("[AB100]" in ended.stderr) == (code == 1 and "2>&-" not in closed.split())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("line", ["schema", "explain topology/examples/xdcr.yaml", "explain --codes"])
def test_a_full_disk_is_named(line: str) -> None:
    ended = shell(f"{line} > /dev/full")
    assert ended.returncode == 1
    assert ended.stderr.startswith("cannot be printed: No space left on device [AB180]"), ended.stderr
