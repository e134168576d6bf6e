"""Running `anabranch`, and keeping secrets out of what it says.

Anabranch does not print secrets by itself. But comments and issues are read by more people than a job's log, and forges
mask secrets in logs alone: whatever is said is searched for them once more.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gitops.text import logged, shown

# `password: env:NAME`, `ca: file:/path`; a rack is a reference too, and no secret.
_REFERENCE = re.compile(r"([\w-]+)[\"']?\s*:\s*[\"']?(env|file):([^\s\"',}\]]+)")
_SHORTEST = 4
_LARGEST = 64 * 1024
# Nothing that anabranch needs; and with the last one it would print tracebacks.
_KEPT_BACK = ("GITHUB_TOKEN", "ANABRANCH_CI_TOKEN", "CI_JOB_TOKEN", "ANABRANCH_DEBUG")


@dataclass(frozen=True)
class Ended:
    """What a command left.

    Attributes:
        code: its exit code.
        raw: its stdout as it came, to be parsed; a secret as short as a word would tear JSON apart.
        stderr: without secrets.
        secrets: what must not be shown, the longest first.
    """

    code: int
    raw: str = field(repr=False)
    stderr: str
    secrets: tuple[str, ...] = field(default=(), repr=False)

    @property
    def stdout(self) -> str:
        """Its stdout without secrets, to be shown."""
        return self.hide(self.raw)

    def hide(self, text: str) -> str:
        """Return text without secrets."""
        return _without(text, self.secrets)


def anabranch(command: str, files: Sequence[str], *options: str) -> Ended:
    """Run one command of anabranch, and show on stderr what it said."""
    environment = {key: value for key, value in os.environ.items() if key not in _KEPT_BACK} | {"NO_COLOR": "1"}
    line = ["anabranch", command, *files, *options]
    sys.stderr.write(f"$ {' '.join(line)}\n")
    sys.stderr.flush()
    try:
        ended = subprocess.run(
            line, env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False
        )
    except FileNotFoundError:
        return Ended(1, "", "the command anabranch is not installed here\n")
    found = set(_secrets(files))
    # What has line breaks, such as a key, is printed with escapes.
    secrets = tuple(sorted(found | set(map(shown, found)), key=len, reverse=True))
    stderr = _without(ended.stderr, secrets)
    sys.stderr.write(logged(stderr))
    return Ended(ended.returncode, ended.stdout, stderr, secrets)


def _without(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def _secrets(files: Sequence[str]) -> Iterator[str]:
    """Yield what the references of topology files lead to on this machine."""
    for file in files:
        try:
            text = Path(file).read_text(encoding="utf-8")
        except (OSError, ValueError):
            continue
        for key, kind, name in _REFERENCE.findall(text):
            if key != "rack":
                found = os.environ.get(name, "") if kind == "env" else _content(Path(name))
                yield from {value for value in (found, found.strip()) if len(value.strip()) >= _SHORTEST}


def _content(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8") if path.stat().st_size <= _LARGEST else ""
    except (OSError, ValueError):
        return ""
