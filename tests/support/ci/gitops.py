"""The pipelines' scripts as a job runs them: with its variables, and with an `anabranch` of the test's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.programs import write_program

ROOT = Path(__file__).parents[3]
SCRIPTS = ROOT / "ci" / "scripts"

_PRETENDED = f"""#!{sys.executable}
import json, os, pathlib, sys
here = pathlib.Path(__file__).parent
(here / "environment.json").write_text(json.dumps(dict(os.environ)))
with (here / "lines.txt").open("a") as lines:
    lines.write(" ".join(sys.argv[1:]) + "\\n")
said = json.loads((here / (sys.argv[1] + ".json")).read_text())
if "--out" in sys.argv and said["file"] is not None:
    pathlib.Path(sys.argv[sys.argv.index("--out") + 1]).write_text(said["file"])
if "--whole" in sys.argv:
    pathlib.Path(sys.argv[sys.argv.index("--whole") + 1]).write_text(said["stdout"])
sys.stdout.write(said["stdout"])
sys.stderr.write(said["stderr"])
sys.exit(said["code"])
"""


@dataclass(frozen=True)
class Ended:
    """What a script left."""

    code: int
    stdout: str
    stderr: str


class Job:
    """A job's machine: a folder, variables, and commands.

    Args:
        folder: where scripts run.
        variables: what the forge sets.
    """

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.folder = folder
        self.summary = folder / "summary.md"
        self._commands = folder / "bin"
        self._commands.mkdir()
        inherited = {
            key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "CI_", "GITLAB_"))
        }
        path = os.pathsep.join((str(self._commands), str(Path(sys.executable).parent), os.environ["PATH"]))
        self.variables = {**inherited, "PATH": path, **variables}
        if "GITHUB_ACTIONS" in variables:
            self.variables["GITHUB_STEP_SUMMARY"] = str(self.summary)

    def pretend(self, command: str, code: int, stdout: str = "", stderr: str = "", file: str | None = None) -> None:
        """Have `anabranch COMMAND` end so; `file` is what it writes where `--out` says."""
        write_program(self._commands / "anabranch", _PRETENDED)
        said = {"code": code, "stdout": stdout, "stderr": stderr, "file": file}
        (self._commands / f"{command}.json").write_text(json.dumps(said))

    def pretended_environment(self) -> dict[str, str]:
        """Return what the pretended command had in its environment the last time."""
        return dict(json.loads((self._commands / "environment.json").read_text()))

    def pretended_lines(self) -> list[str]:
        """Return the command lines that were asked for."""
        return (self._commands / "lines.txt").read_text().splitlines()

    def run(self, script: str, *arguments: object) -> Ended:
        """Run a script to its end."""
        line = [sys.executable, str(SCRIPTS / f"{script}.py"), *map(str, arguments)]
        ended = subprocess.run(
            line,
            cwd=self.folder,
            env=self.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def fallback(self, ended: Ended) -> str:
        """Return what was shown where it needs no permission."""
        return self.summary.read_text() if self.summary.exists() else ended.stdout
