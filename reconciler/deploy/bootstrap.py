"""A program of its own: what a Spark driver runs first. `standalone` copies it to the folder of a data centre.

Run as `python driver.py <description>`. It imports the standard library alone until it is certain that the interpreter
has the Anabranch that is expected: a worker may have another one, or none, and the report must name that.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PRIVATE = 0o600


def is_on_record(record: Path, name: str, number: int) -> bool:
    """Return whether a generation is still to run; a record that cannot be read now has it."""
    try:
        told = json.loads(record.read_text(encoding="utf-8"))
        return any(one["name"] == name and one["number"] == number for one in told["processes"])
    except FileNotFoundError:
        # The folder is there: what was deployed was cleared. Without the folder, a disk is away for now.
        return not record.parent.is_dir()
    except (OSError, ValueError, LookupError, TypeError):
        return True


def report_of(description: dict[str, Any]) -> Path:
    """Return the file with how the driver fares: each driver of a generation has its own."""
    return Path(description["reports"]) / f"{description['name']}.{description['number']}.{Path.cwd().name}.json"


def facts() -> dict[str, str]:
    """Return which driver this is, and where: Spark starts each in a folder with its name."""
    return {"driver": Path.cwd().name, "host": socket.gethostname()}


def tell(report: Path, told: dict[str, Any]) -> None:
    """Write a report, so that no reader gets half of it."""
    new = report.with_suffix(".new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(told, file)
    new.replace(report)


def lacking(description: dict[str, Any]) -> str:
    """Return what an interpreter lacks to run a description; empty where nothing is."""
    try:
        found = version("anabranch")
    except PackageNotFoundError:
        found = ""
    if found == description["version"]:
        return ""
    return f"found {f'Anabranch {found}' if found else 'no Anabranch'} in {sys.executable} on {socket.gethostname()}"


def main() -> int:
    """Run a description; return the exit code, which is 0 where nothing is to run any more."""
    path = Path(sys.argv[1])
    if path.parents[1].is_dir() and not path.exists():
        # A driver that took the place of a lost one, and had not begun when its generation was ended.
        return 0
    description = json.loads(path.read_text(encoding="utf-8"))
    is_over = not is_on_record(Path(description["record"]), description["name"], description["number"])
    if is_over and not description.get("begins_context"):
        return 0
    if why := lacking(description):
        why = f"expected Anabranch {description['version']}; {why}"
        tell(report_of(description), {**facts(), "pid": 0, "since": time.time(), "restarts": 1, "why": why})
        sys.stderr.write(f"{why}\n")
        return 1
    from reconciler.deploy import spark_driver  # noqa: PLC0415

    if is_over:
        # Without a context YARN takes that end for a failure, and starts another driver.
        spark_driver.begin_context()
        return 0
    return spark_driver.run(description)


if __name__ == "__main__":
    sys.exit(main())
