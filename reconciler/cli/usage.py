"""Turns arguments that an operation refuses into usage errors of the command line."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import typer

from reconciler.operate.targets import InvalidArgument


def as_usage(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that ends with 2 and names the option where an operation raises InvalidArgument."""

    @wraps(command)
    def run(*arguments: object, **options: object) -> None:
        try:
            command(*arguments, **options)
        except InvalidArgument as error:
            raise typer.BadParameter(error.message, param_hint=f"--{error.argument}") from None

    return run
