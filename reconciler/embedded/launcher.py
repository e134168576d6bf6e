"""A program of its own: sets PR_SET_PDEATHSIG, so that it ends with its parent, then becomes the command it is given.

Run by `launch` as `python -I -S launcher.py <parent pid> <command>...`. It imports the standard library alone, since
every broker waits for it. A `preexec_fn` would do the same inside the parent, but running Python between fork and exec
is not safe in a process with threads, and Kafka clients have threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Bind this process to its parent and execute the command."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    # The parent may have died before the call above; then no signal will ever come.
    if os.getppid() != parent:
        sys.exit("the parent has ended")
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
