"""How much memory something takes at its peak, in a process of its own."""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

MIB = 2**20
_ROOT = Path(__file__).parents[3]
_PATIENCE = 240


class Measured(NamedTuple):
    """What a function returned, as JSON has it, and by how many bytes its process grew meanwhile."""

    result: Any
    peak: int


def measured(place: str, *arguments: object) -> Measured:
    """Call a function in a new process.

    Args:
        place: module and name: `tests.unit.test_peers:speak`.
        arguments: as JSON has them.
    """
    command = [sys.executable, "-B", "-m", "tests.support.wire.peak", place, json.dumps(arguments)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return Measured(*json.loads(done.stdout.splitlines()[-1]))


def peak() -> int:
    """Return how many bytes of memory this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _main() -> None:
    module, _, name = sys.argv[1].partition(":")
    function = getattr(importlib.import_module(module), name)
    before = peak()
    result = function(*json.loads(sys.argv[2]))
    print(json.dumps([result, peak() - before]))


if __name__ == "__main__":
    _main()
