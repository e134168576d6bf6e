"""Scripts that stand for programs, written so that they can be started at once, and replaced while they are."""

from __future__ import annotations

import subprocess
from pathlib import Path


def write_program(path: Path, text: str) -> None:
    """Write a script that can be executed, with its folder.

    Linux refuses to open a file for writing while it is being executed, and to execute a file that anybody holds open
    for writing: ETXTBSY, execve(2) and open(2). So what is there is replaced and not written into, and another
    process writes, whose files no program that another thread starts meanwhile can inherit.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.new")
    subprocess.run(["install", "-m", "755", "/dev/stdin", str(new)], input=text, text=True, check=True, timeout=60)
    new.replace(path)
