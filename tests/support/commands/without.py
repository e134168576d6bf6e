"""Run a command as if some packages were not installed: `python -m tests.support.commands.without a,b COMMAND …`."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Collection, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.support.commands.command import Ended, run_to_its_end

_ROOT = Path(__file__).parents[3]


class Hidden(PathFinder):
    """Finds all modules but those of some packages."""

    packages: Collection[str] = ()

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a module is; None for a hidden one."""
        return None if fullname.partition(".")[0] in cls.packages else PathFinder.find_spec(fullname, path, target)


def anabranch_without(packages: Collection[str], *arguments: object, limit: float = 600.0) -> Ended:
    """Run a command to its end where some packages are missing."""
    command = [sys.executable, "-m", "tests.support.commands.without", ",".join(packages), *map(str, arguments)]
    ended = run_to_its_end(command, limit)
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def _main(packages: str, *arguments: str) -> None:
    Hidden.packages = packages.split(",")
    finders: list[Any] = sys.meta_path
    finders[:] = [Hidden if finder is PathFinder else finder for finder in finders]
    for module in [name for name in sys.modules if name.partition(".")[0] in Hidden.packages]:
        del sys.modules[module]
    sys.argv[1:] = arguments
    runpy.run_module("reconciler.cli.main", run_name="__main__")


if __name__ == "__main__":
    _main(*sys.argv[1:])
