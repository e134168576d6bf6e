"""Builds the documentation as a site: `python -m release site`.

The pages of `docs/` are copied first, with links that lead out of it made their text: a site has no such pages.
"""

from __future__ import annotations

import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "build" / "site"
CONFIG = "zensical.toml"
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def make(folder: Path) -> None:
    """Build the site below a folder: its sources in `docs`, and it in `site`; any warning is an error.

    Raises:
        CalledProcessError: a page is missing, a link is broken, or the configuration is wrong.
    """
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder / "docs")
    for page in (folder / "docs").rglob("*.md"):
        inside = page.relative_to(folder / "docs").as_posix()
        page.write_text(within(page.read_text(encoding="utf-8"), inside), encoding="utf-8")
    shutil.copy(ROOT / CONFIG, folder)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", CONFIG]
    subprocess.run(command, cwd=folder, check=True)


def within(text: str, page: str) -> str:
    """Return a page's text without links that lead out of `docs/`.

    Args:
        text: Markdown.
        page: its path below `docs/`.
    """
    folder = posixpath.dirname(page)
    return "".join(
        part if part.startswith("```") else _LINK.sub(lambda link: _kept(link, folder), part)
        for part in _FENCE.split(text)
    )


def _kept(link: re.Match[str], folder: str) -> str:
    return link[1] if posixpath.normpath(posixpath.join(folder, link[2])).startswith("..") else link[0]
