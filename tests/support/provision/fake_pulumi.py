"""A `pulumi` for tests: it answers what Pulumi's Automation API asks, and carries programs out on real brokers.

It does what Pulumi 3.274.1 was seen to do: it compares with its state and never with the clusters, begins many
resources before the first is done, changes what it imports in the same run, deletes nothing that is protected, saves
its state after each resource, and keeps a lock meanwhile that a kill leaves behind. `install` puts it on PATH. What it
was asked is in `calls.jsonl`; how it misbehaves is in variables:

    FAKE_PULUMI_HOME      where states and calls are kept
    FAKE_PULUMI_VERSION   what it says it is
    FAKE_PULUMI_FAIL      a JSON object: the first words of a command, and its exit code and what it says
    FAKE_PULUMI_LOCKED    somebody else updates the stack: who, as `root@elsewhere (pid 7)`
    FAKE_PULUMI_DIE       the resource in the middle of whose creation it is killed: it is made, and not in the state
    FAKE_PULUMI_WAIT      the resource after which it waits until it is interrupted
    FAKE_PULUMI_REFUSE    a JSON object: resources, by the end of their names, that fail, and what is said
    FAKE_PULUMI_UNREADY   likewise, of those that fail after the cluster was changed: the state has both
    FAKE_PULUMI_NO_PIP    the environment of programs has no pip
"""

from __future__ import annotations

import getpass
import importlib
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any, NoReturn

from ruamel.yaml import YAML

from tests.support.programs import write_program

ROOT = Path(__file__).resolve().parents[3]
HOME, CALLS = "FAKE_PULUMI_HOME", "calls.jsonl"
TOLD_VARIABLES = ("PULUMI_", "KAFKA_", "FAKE_", "ANABRANCH_HANDOVER", "PATH")


def install(folder: Path) -> Path:
    """Write the command into a folder, for PATH; return the folder."""
    path = folder / "pulumi"
    write_program(
        path,
        f'#!/bin/sh\nPYTHONPATH="{ROOT}:$PYTHONPATH" exec "{sys.executable}" '
        '-m tests.support.provision.fake_pulumi "$@"\n',
    )
    return folder


def calls(home: Path) -> list[dict[str, Any]]:
    """Return what a command was asked: argv, cwd, stdin, the names of its variables, and some of their values."""
    path = home / CALLS
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def commands(home: Path, word: str) -> list[list[str]]:
    """Return the commands that begin with a word, without what all have in common."""
    found = [[one for one in call["argv"] if one != "--non-interactive"] for call in calls(home)]
    return [argv for argv in found if argv[0] == word]


def saved(home: Path, stack: str) -> dict[str, Any]:
    """Return the state of a stack as `stack export` would."""
    value: dict[str, Any] = json.loads((home / f"{stack}.json").read_text())
    return value


def settings_file(stack: str) -> Path:
    """Where a stack's settings are: Pulumi.yaml, in the folder that a command runs in, says so."""
    project = YAML(typ="safe").load(Path("Pulumi.yaml"))
    return Path(project["stackConfigDir"]) / f"Pulumi.{stack}.yaml"


def end(message: str, code: int) -> NoReturn:
    sys.stderr.write(f"error: {message}\n")
    sys.exit(code)


def option(arguments: list[str], name: str) -> str | None:
    return arguments[arguments.index(name) + 1] if name in arguments else None


def lock_in(home: Path, stack: str) -> Path:
    """Return the file that is there while a stack is locked."""
    return home / f"{stack}.lock"


def lock_file(stack: str) -> Path:
    return lock_in(Path(os.environ[HOME]), stack)


def refuse_when_locked(stack: str, doing: str = "") -> None:
    """End where somebody updates the stack, or was killed meanwhile."""
    path = lock_file(stack)
    holder = os.environ.get("FAKE_PULUMI_LOCKED") or (path.read_text() if path.exists() else "")
    if holder:
        message = (
            "the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the "
        )
        message += f"lock file with `pulumi cancel`.\n  {path.as_uri()}: created by {holder} at 2026-01-01T00:00:00Z"
        end(doing + message, 255)


def lock(stack: str) -> None:
    """Keep others out."""
    lock_file(stack).write_text(f"{getpass.getuser()}@{socket.gethostname()} (pid {os.getpid()})")


def set_config(stack: str, arguments: list[str]) -> None:
    if arguments[1] == "set":
        pairs = [[arguments[2], arguments[-1]]]
    else:
        pairs = [arguments[i + 1].split("=", 1) for i, one in enumerate(arguments) if one == "--plaintext"]
    path = settings_file(stack)
    yaml = YAML()
    value = (yaml.load(path) if path.exists() else None) or {}
    value.setdefault("config", {}).update(dict(pairs))
    yaml.dump(value, path)


def update(stack: str, command: str, event_log: str | None) -> int:
    """Preview or bring up a stack; return the exit code."""
    if os.environ.get("FAKE_PULUMI_NO_PIP"):
        end("failed to discover package requirements: calling `python3 -m pip list`: exit status 1", 1)
    if command == "up":
        refuse_when_locked(stack)
        lock(stack)
    engine: Any = importlib.import_module("tests.support.provision.fake_engine")
    code: int = engine.Update(stack, command == "preview", event_log).run()
    if command == "up":
        lock_file(stack).unlink(missing_ok=True)
    return code


def answer(arguments: list[str]) -> int:
    """Carry one command out; return its exit code."""
    home = Path(os.environ[HOME])
    stack = option(arguments, "--stack") or arguments[-1]
    path = home / f"{stack}.json"
    words = " ".join(one for one in arguments[:2] if not one.startswith("-"))
    words = "cancel" if arguments[0] == "cancel" else words
    match words:
        case "version":
            print(os.environ.get("FAKE_PULUMI_VERSION", "v3.272.0"))
        case "stack select":
            if not path.exists():
                end(f"no stack named '{stack}' found", 6)
        case "stack init":
            path.write_text(json.dumps({"version": 3, "deployment": {"manifest": {}}}))
        case "stack export":
            print(path.read_text())
        case "stack import":
            refuse_when_locked(stack, "could not import deployment: ")
            path.write_text(Path(option(arguments, "--file") or "").read_text())
        case "config set-all" | "config set":
            set_config(stack, arguments)
        case "preview" | "up":
            return update(stack, words, option(arguments, "--event-log"))
        case "cancel":
            lock_file(stack).unlink(missing_ok=True)
        case "stack output":
            print("{}")
        case "stack history":
            times = {"startTime": "2026-01-01T00:00:00.000Z", "endTime": "2026-01-01T00:00:01.000Z"}
            print(
                json.dumps(
                    [{"kind": "update", "message": "", "environment": {}, "config": {}, "result": "succeeded"} | times]
                )
            )
        case _:
            end(f"unknown command {words!r}", 2)
    return 0


def main(argv: list[str]) -> int:
    """Keep what was asked, and answer it."""
    home = Path(os.environ[HOME])
    home.mkdir(parents=True, exist_ok=True)
    told = {key: value for key, value in os.environ.items() if key.startswith(TOLD_VARIABLES)}
    call = {"argv": argv, "cwd": str(Path.cwd()), "stdin": sys.stdin.read(), "names": sorted(os.environ), "env": told}
    with (home / CALLS).open("a") as file:
        file.write(json.dumps(call) + "\n")
    arguments = [one for one in argv if one != "--non-interactive"]
    failing: dict[str, list[Any]] = json.loads(os.environ.get("FAKE_PULUMI_FAIL", "{}"))
    for start, (code, said) in failing.items():
        if " ".join(arguments).startswith(start):
            end(said, code)
    return answer(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
