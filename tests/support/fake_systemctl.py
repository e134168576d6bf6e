"""A stand-in for `systemctl`: starts what units say, without restarting, and keeps their state in a folder.

Run as `systemctl [--user] --no-pager COMMAND…`; FAKE_SYSTEMD names the folder. Enabled units are files there, with the
process id of what they started.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL

STATE = Path(os.environ["FAKE_SYSTEMD"])
UNITS = Path(os.environ["XDG_CONFIG_HOME"]) / "systemd" / "user"


def main(arguments: list[str]) -> int:
    """Carry one command out."""
    arguments = [one for one in arguments if one not in ("--user", "--no-pager")]
    with (STATE / "asked").open("a") as file:
        file.write(f"{shlex.join(arguments)}\n")
    match arguments:
        case ["show", "--property=Version"]:
            return 0
        case ["show", name, _]:
            print(state(name))
        case ["daemon-reload"]:
            UNITS.mkdir(parents=True, exist_ok=True)
            (STATE / "loaded").write_text("\n".join(sorted(path.name for path in UNITS.iterdir())))
        case ["enable", "--now", name]:
            start(name)
        case ["disable", "--now", name]:
            stop(name)
        case _:
            print(f"Unknown command {arguments[0]}.", file=sys.stderr)
            return 1
    return 0


def start(name: str) -> None:
    """Start what the template of a unit says."""
    template = f"{name.partition('@')[0]}@.service"
    if template not in (STATE / "loaded").read_text().splitlines():
        sys.exit(f"Failed to enable unit: Unit file {name} does not exist.")
    lines = (UNITS / template).read_text().splitlines()
    command = next(line for line in lines if line.startswith("ExecStart=")).removeprefix("ExecStart=")
    child = subprocess.Popen(shlex.split(command), start_new_session=True, stdout=DEVNULL, stderr=DEVNULL)
    (STATE / name).write_text(str(child.pid))


def stop(name: str) -> None:
    """Stop a unit."""
    path = STATE / name
    if path.exists():
        with suppress(ProcessLookupError):
            os.kill(int(path.read_text()), signal.SIGTERM)
        while lives(int(path.read_text())):
            time.sleep(0.05)
        path.unlink()


def state(name: str) -> str:
    """Return the properties that are shown of a unit."""
    path = STATE / name
    pid = int(path.read_text()) if path.exists() else 0
    runs = bool(pid) and lives(pid)
    told = {"ActiveState": "active" if runs else "failed" if pid else "inactive"}
    told |= {"SubState": "running" if runs else "dead", "Result": "success" if runs else "exit-code"}
    return "\n".join(f"{key}={value}" for key, value in (told | {"MainPID": str(pid), "NRestarts": "0"}).items())


def lives(pid: int) -> bool:
    """Whether a process lives, and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
