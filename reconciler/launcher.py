"""A program of its own: sets PR_SET_PDEATHSIG, so that it gets a signal when its parent ends, then becomes a command.

Run as `python -I -S launcher.py <signal> <parent pid> <command>...`, which `launched` returns. It imports the standard
library alone, since every broker waits for it. A `preexec_fn` would do the same inside the parent, but running Python
between fork and exec is not safe in a process with threads, and Kafka clients have threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def launched(*command: str, number: signal.Signals) -> list[str]:
    """Return a command that gets a signal when this process ends, even by SIGKILL.

    The thread that starts it must last as long: its end counts as that of the parent (prctl(2), PR_SET_PDEATHSIG).

    Args:
        command: the command; a name without a slash is looked for on PATH.
        number: the signal.
    """
    return [sys.executable, "-I", "-S", __file__, str(int(number)), str(os.getpid()), *command]


def main() -> None:
    """Bind this process to its parent and execute the command."""
    number, parent, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    # The parent may have died before the call above; then no signal will ever come.
    if os.getppid() != parent:
        sys.exit("the parent has ended")
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"{command[0]}: {error.strerror}")


if __name__ == "__main__":
    main()
