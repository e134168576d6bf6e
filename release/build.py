"""`make release`: the wheel and the sdist, the lines that install them by hash, the list of components, and checksums.

Asks no index: what builds the wheel is installed here at pinned versions, and hashes come from the committed locks.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from release.closure import closure
from release.lock import BUILD, ROOT, RUNTIME, Pin, line, needed, normalised, read
from release.sbom import sbom

NAME = "anabranch"
DIST = ROOT / "dist"
# What a tree without history is dated; ZIP files know nothing before 1980.
_EARLIEST = 315532800


def make(into: Path, *, allow_dirty: bool = False) -> None:
    """Build all that is published.

    Args:
        into: the folder; `dist` is emptied first, any other must be empty.
        allow_dirty: whether files that are not committed may be in it.

    Raises:
        SystemExit: files are not committed, or the folder is not empty.
        subprocess.CalledProcessError: the build has failed.
        ValueError: the locks, the declared dependencies and what is installed here do not fit together.
    """
    if not allow_dirty and (changed := _git("status", "--porcelain")):
        message = f"not committed, and would be in the release:\n{changed}\ncommit it, or say --allow-dirty"
        raise SystemExit(message)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or _git("log", "-1", "--format=%ct") or _EARLIEST)
    if into == DIST:
        shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True, exist_ok=True)
    if any(into.iterdir()):
        message = f"{into} is not empty"
        raise SystemExit(message)
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch)}
    # Isolation would fetch the build's own tools, in whatever version there is.
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(into), str(ROOT)]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    project = declared_project()
    (wheel,) = into.glob("*.whl")
    product = Pin(NAME, project["version"], (_sha256(wheel),))
    (into / f"{NAME}.lock").write_text(line(product), encoding="utf-8")
    for lock in (RUNTIME, BUILD):
        shutil.copyfile(lock, into / lock.name)
    needs = closure(needed(project))
    pins = read(RUNTIME)
    if {pin.name for pin in pins} != set(needs):
        odd = ", ".join(sorted({pin.name for pin in pins} ^ set(needs)))
        message = f"{RUNTIME.name} is not what pyproject.toml needs: {odd}; run make lock"
        raise ValueError(message)
    direct = {normalised(Requirement(one).name) for one in needed(project)}
    document = sbom(product, pins, {**needs, NAME: direct}, epoch)
    (into / f"{NAME}-{product.version}.cdx.json").write_text(document, encoding="utf-8")
    sums = "".join(f"{_sha256(path)}  {path.name}\n" for path in sorted(into.iterdir()))
    (into / "SHA256SUMS").write_text(sums, encoding="utf-8")


def declared_project() -> dict[str, Any]:
    """Return what pyproject.toml declares of the project."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _git(*arguments: str) -> str:
    """Return what git says of this tree; nothing where it is not in a repository of its own."""
    if not (ROOT / ".git").exists():
        return ""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
