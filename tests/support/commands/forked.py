"""Commands in processes of their own, forked from one that has imported already what commands import.

A command works for a tenth of a second, and imports for half of one; the tests run hundreds of them. Each has its own
memory, environment, folder, streams and exit code, as if it had been started.
`python -m tests.support.commands.forked SOCKET` is the process that forks; it ends when its stdin is closed, which is
when the process that started it ends.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import json
import os
import pkgutil
import selectors
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import reconciler
from reconciler.cli import main as command_line
from tests.support.commands.trees import kill_tree

# The rooms that commands load when they are called; Spark and Pulumi are not among them.
ROOMS = ("cli", "declare", "model", "observe", "plan", "provision", "report", "state")
_LARGEST = 1 << 20


def run(arguments: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Run a command line of `anabranch` to its end, without a terminal, with this process's environment and folder.

    Raises:
        TimeoutExpired: it took longer, and was killed.
    """
    request = {"arguments": list(arguments), "environment": dict(os.environ), "folder": str(Path.cwd())}
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line,
        Path(os.devnull).open("rb") as nothing,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        line.connect(_forker())
        socket.send_fds(line, [b"."], [stream.fileno() for stream in (nothing, out, err)])
        line.sendall(json.dumps(request).encode() + b"\n")
        line.settimeout(seconds)
        answers = line.makefile("r")
        process = int(answers.readline())
        try:
            code = int(answers.readline())
        except TimeoutError:
            kill_tree(process)
            raise subprocess.TimeoutExpired(list(arguments), seconds, _text(out), _text(err)) from None
        return subprocess.CompletedProcess(list(arguments), code, _text(out), _text(err))


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode().replace("\r\n", "\n")


@functools.cache
def _forker() -> str:
    """Start the process that forks, and return the address of its socket."""
    folder = tempfile.TemporaryDirectory(prefix="anabranch-forked-")
    address = str(Path(folder.name) / "socket")
    command = [sys.executable, "-m", __name__, address]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3])
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"

    def end(stdin: IO[bytes]) -> None:
        stdin.close()
        process.wait()
        folder.cleanup()

    atexit.register(end, process.stdin)
    return address


def main(address: str) -> int:
    """Fork a process for each connection until stdin ends; in a forked one, return the code of its command."""
    for room in ROOMS:
        package = importlib.import_module(f"{reconciler.__name__}.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door, selectors.DefaultSelector() as either:
        door.bind(address)
        door.listen(64)
        either.register(door, selectors.EVENT_READ)
        either.register(sys.stdin, selectors.EVENT_READ)
        os.write(1, b"ready\n")
        while all(key.fileobj is door for key, _ in either.select()):
            line, _ = door.accept()
            if os.fork() == 0:
                break
            line.close()
            # Those that have ended since.
            while _reaped():
                pass
        else:
            return 0
    return _serve(line)


def _reaped() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return False


def _serve(line: socket.socket) -> int:
    """Fork the command's own process, wait for it and tell its code; in that process, return the code."""
    _, streams, _, _ = socket.recv_fds(line, 1, 3)
    text = b""
    while not text.endswith(b"\n"):
        text += line.recv(_LARGEST)
    process = os.fork()
    if process != 0:
        line.sendall(b"%d\n" % process)
        _, status = os.waitpid(process, 0)
        # Who has lost patience does not listen any more.
        with contextlib.suppress(BrokenPipeError):
            line.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        # This one has nothing of its own to clean up.
        os._exit(0)
    line.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    request = json.loads(text)
    known = _python_path()
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    # Where `python -m` begins to look for modules.
    sys.path[: 1 + len(known)] = [request["folder"], *_python_path()]
    sys.argv = [command_line.__file__, *request["arguments"]]
    return command_line.main()


def _python_path() -> list[str]:
    return [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
