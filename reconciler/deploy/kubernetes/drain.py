"""A program of its own: ends what a pod runs in order, before Kubernetes ends the pod (`preStop`).

Without it the JVM beside which Python runs ends at once, and Python with it: nothing is lost, but other processes wait
for the lease of its partitions. Run as `python -m reconciler.deploy.kubernetes.drain <seconds> <word>`.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

_PAUSE = 0.2


def running(word: str) -> list[int]:
    """Return the ids of all processes with a word in their command line, but for this one.

    Source: proc(5), `/proc/PID/cmdline`: words end with a zero byte; that of a zombie is empty.
    """
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if word.encode() in path.read_bytes().split(b"\0") and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
    return found


def main() -> int:
    """Ask processes to end, and wait for that; return 0 where all have ended in time, else 1."""
    deadline, word = time.monotonic() + float(sys.argv[1]), sys.argv[2]
    for pid in running(word):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    while running(word):
        if time.monotonic() > deadline:
            return 1
        time.sleep(_PAUSE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
