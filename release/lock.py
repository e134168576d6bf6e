"""The locks in `ci/`: every distribution that is installed at run time, with its version and the hashes of its files.

`make lock` makes them anew with pip-tools, which asks the index that pip is configured for; everything else reads them.
The format is that of pip's requirements files in hash-checking mode
(https://pip.pypa.io/en/stable/topics/secure-installs/), and no file names an index.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RUNTIME = ROOT / "ci" / "requirements.lock"
BUILD = ROOT / "ci" / "build.lock"
CONSTRAINTS = ROOT / "constraints.txt"

LOCKED = ("pulumi", "replicate", "serve")
"""The extras that are locked with the wheel's own dependencies."""

_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>\S+)(?P<hashes>(?:\s+--hash=sha256:[0-9a-f]{64})+)"
)
# Whatever pip is configured with stays out of the file: it is for other machines.
_OPTIONS = (
    "--quiet",
    "--generate-hashes",
    "--allow-unsafe",
    "--strip-extras",
    "--no-header",
    "--no-annotate",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-emit-trusted-host",
    "--no-build-isolation",
)
_SAYS = {
    RUNTIME: "# What the wheel and its extras need, with the hashes of each version's files. Made by `make lock`.\n",
    BUILD: "# What builds PySpark, which is published as source alone. Made by `make lock`.\n",
}


@dataclass(frozen=True)
class Pin:
    """One locked distribution.

    Attributes:
        name: normalised (PEP 503), such as `ruamel-yaml`.
        version: such as `4.3.0`.
        hashes: SHA-256 of its files, as 64 hexadecimal digits each, sorted.
    """

    name: str
    version: str
    hashes: tuple[str, ...]


def needed(project: Mapping[str, Any]) -> list[str]:
    """Return the requirements of a project of pyproject.toml, those of the locked extras included."""
    extras = project["optional-dependencies"]
    return [*project["dependencies"], *(one for name in LOCKED for one in extras[name])]


def normalised(name: str) -> str:
    """Return the name of a distribution as PEP 503 writes it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read(path: Path) -> tuple[Pin, ...]:
    """Return what a lock holds, in its order.

    Raises:
        ValueError: a line is something else than a comment or `name==version` with SHA-256 hashes.
    """
    text = "".join(line for line in path.read_text(encoding="utf-8").splitlines(True) if not line.startswith("#"))
    pins = []
    for entry in text.replace("\\\n", " ").splitlines():
        if not entry.strip():
            continue
        found = _PIN.fullmatch(entry.strip())
        if found is None:
            message = f"{path.name}: expected name==version with --hash=sha256:…, found {entry.strip()[:80]}"
            raise ValueError(message)
        hashes = tuple(sorted(re.findall(r"[0-9a-f]{64}", found["hashes"])))
        pins.append(Pin(normalised(found["name"]), found["version"], hashes))
    return tuple(pins)


def line(pin: Pin) -> str:
    """Return the line of a lock that installs a distribution."""
    return " \\\n    ".join([f"{pin.name}=={pin.version}", *(f"--hash=sha256:{one}" for one in pin.hashes)]) + "\n"


def make() -> None:
    """Write both locks anew, with the versions that constraints.txt has.

    Raises:
        subprocess.CalledProcessError: pip-tools has failed; it has said why.
    """
    _compile(RUNTIME, [*(f"--extra={name}" for name in LOCKED), str(ROOT / "pyproject.toml")])
    with tempfile.TemporaryDirectory() as folder:
        needed = Path(folder, "build.in")
        needed.write_text("setuptools\n", encoding="utf-8")
        _compile(BUILD, [str(needed)])


def _compile(lock: Path, inputs: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # Into an empty file: what stood in the old one is no reason for anything.
        made = Path(folder, lock.name)
        command = [sys.executable, "-m", "piptools", "compile", *_OPTIONS]
        command += ["--constraint", str(CONSTRAINTS), "--output-file", str(made), *inputs]
        subprocess.run(command, cwd=ROOT, check=True)
        pins = read(made)
    lock.write_text(_SAYS[lock] + "".join(line(pin) for pin in pins), encoding="utf-8")
