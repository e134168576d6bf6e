"""Run `anabranch` as users do: a process of its own, with its own stdin."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.support.commands import forked
from tests.support.commands.reports import SCHEMAS, check
from tests.support.commands.trees import kill_tree

LIMIT_SECONDS = 600
# Those look for what they have started among all their processes, and what they start looks for them.
WITH_SPARK = ("replicate", "verify", "demo")
COMMAND = (sys.executable, "-m", "reconciler.cli.main")


@dataclass(frozen=True)
class Ended:
    code: int
    stdout: str
    stderr: str


def anabranch(*arguments: object, answer: str | Callable[[], str] | None = None, limit: float = LIMIT_SECONDS) -> Ended:
    """Run a command to its end.

    Args:
        arguments: of the command.
        answer: what to say to the question that the command asks on a terminal, or a function that says it once the
            question is there; without one there is no terminal.
        limit: seconds it may take.
    """
    line = list(map(str, arguments))
    command = [*COMMAND, *line]
    if answer is None:
        ended = run_to_its_end(command, limit) if line[0] in WITH_SPARK else forked.run(line, limit)
        _check_json(line, ended.stdout)
        return Ended(ended.returncode, ended.stdout, ended.stderr)
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            command, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                asked = _read_question(process)
                os.write(ours, (answer if isinstance(answer, str) else answer()).encode())
                stdout, stderr = process.communicate(timeout=limit)
            except BaseException:
                kill_tree(process.pid)
                raise
    finally:
        os.close(ours)
        os.close(theirs)
    return Ended(process.returncode, stdout, asked + stderr)


def run_to_its_end(command: Sequence[str], limit: float) -> subprocess.CompletedProcess[str]:
    """Run a command without a terminal; when it takes too long, nothing of what it started runs any more.

    Args:
        command: its line.
        limit: seconds it may take.

    Raises:
        TimeoutExpired: it took longer, and was killed.
    """
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            stdout, stderr = process.communicate(timeout=limit)
        except BaseException:
            kill_tree(process.pid)
            raise
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def _check_json(arguments: Sequence[str], stdout: str) -> None:
    """Hold JSON that a command printed against the schema that users have of it."""
    if stdout and arguments[0] in SCHEMAS and ("--format", "json") in pairwise(arguments):
        check(arguments[0], json.loads(stdout))


def _read_question(process: subprocess.Popen[str]) -> str:
    """Read stderr up to the question, or to its end when none is asked."""
    assert process.stderr is not None
    read = ""
    while not read.endswith(("[y/N] ", "to go on: ")) and (letter := process.stderr.read(1)):
        read += letter
    return read
