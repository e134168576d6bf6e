"""A distribution of a user's, with a policy class: built and installed as real ones are, but without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "policies.md"


def documented_class() -> str:
    """Return the example of a policy class in the reference."""
    (source,) = re.findall(r"```python\n(.*?)```", REFERENCE.read_text(encoding="utf-8"), re.DOTALL)
    return str(source)


def documented_entry_points() -> dict[str, str]:
    """Return the entry points of the example: by name, `module:Class`."""
    (table,) = re.findall(
        r'```toml\n\[project.entry-points."anabranch.policies"\]\n(.*?)```', REFERENCE.read_text(), re.DOTALL
    )
    return dict(re.findall(r'([\w-]+) = "([^"]+)"', table))


def install(folder: Path, source: str, entry_points: dict[str, str]) -> Path:
    """Build a wheel with the module `acme_naming`, have pip install it, and return where it is.

    Args:
        folder: for the wheel and the installation.
        source: of the module.
        entry_points: of the group `anabranch.policies`.
    """
    wheel = folder / "acme_naming-1.0-py3-none-any.whl"
    points = "".join(f"{name} = {value}\n" for name, value in entry_points.items())
    files = {
        "acme_naming.py": source,
        "acme_naming-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: acme-naming\nVersion: 1.0\n",
        "acme_naming-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "acme_naming-1.0.dist-info/entry_points.txt": f"[anabranch.policies]\n{points}",
    }
    record = "acme_naming-1.0.dist-info/RECORD"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in (files | {record: "".join(f"{name},,\n" for name in (*files, record))}).items():
            archive.writestr(name, text)
    site = folder / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", site, wheel]
    subprocess.run(list(map(str, command)), check=True, timeout=600)
    return site


def with_path(site: Path) -> dict[str, str]:
    """Return the environment of a process that finds what is installed in `site` too."""
    path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}
