"""Environments (`--env NAME`): files beside a topology file that hold what differs between staging and production."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import typer

OPTION = "--env"
VARIABLE = "ANABRANCH_ENV"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_STDIN = Path("-")


# Of this process; empty for none.
_chosen = [""]


def chosen() -> str:
    """Return the environment of this process; empty for none."""
    return _chosen[0]


def choose(name: str | None) -> None:
    """Choose the environment of this process; None for none.

    Raises:
        typer.BadParameter: it is no name.
    """
    if name and not _NAME.fullmatch(name):
        message = "an environment has a name of letters, digits, _ and -"
        raise typer.BadParameter(message, param_hint=OPTION)
    _chosen[0] = name or ""
    # Deployed processes have all files in folders of their own, and inherit the values.
    os.environ.pop(VARIABLE, None)


def in_environment(files: list[Path]) -> list[Path]:
    """Return topology files with those that the environment adds, after its values are set.

    Of `shop.yaml` and the environment `prod` these are `shop.prod.yaml`, a topology file, and
    `shop.prod.values.yaml`, the values of references `env:NAME`. A variable that is set already keeps its value.

    Raises:
        typer.BadParameter: the environment has no files.
        DeclaredInputError: AB133, a values file holds something else.
    """
    name = chosen()
    if not name or not files:
        return files
    own = [file for file in files if file != _STDIN]
    added = [one for file in own if (one := file.with_name(f"{file.stem}.{name}{file.suffix}")).exists()]
    values = [one for file in own if (one := file.with_name(f"{file.stem}.{name}.values.yaml")).exists()]
    if not added and not values:
        front = f"{own[0].stem if own else 'FILE'}.{name}"
        message = (
            f"no files of {name} beside {', '.join(map(str, files))}: expected {front}.yaml, with what is declared "
            f"there alone, or {front}.values.yaml, with values of references"
        )
        raise typer.BadParameter(message, param_hint=OPTION)
    for path in values:
        from reconciler.declare.values import read_values

        for variable, value in read_values(path).items():
            os.environ.setdefault(variable, value)
    return [*files, *(one for one in dict.fromkeys(added) if one not in files)]


def without_environment(files: Sequence[Path]) -> list[Path]:
    """Return the topology files that a command line with the same `--env` must name."""
    name = chosen()
    return [file for file in files if not name or file.suffixes[-2:-1] != [f".{name}"]]
