"""What users install: the extras of Anabranch itself, and entry points that files name.

Files name entry points, never modules: only what is installed can run, therefore.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Literal

from reconciler.model.base.errors import EnvironmentFault, Problem

Extra = Literal["replicate", "stream", "pulumi", "serve", "otlp", "kerberos"]
_NOT_HERE = "AB327"
_EXTRAS: dict[Extra, tuple[str, ...]] = {
    "replicate": ("pyspark", "py4j"),
    "stream": ("pyarrow",),
    "pulumi": ("pulumi", "pulumi_kafka"),
    "serve": ("fastapi", "uvicorn", "starlette"),
    "otlp": ("opentelemetry",),
    "kerberos": ("gssapi",),
}


def need(*extras: Extra) -> None:
    """Check that some extras are installed, before anything is begun that needs them later.

    Raises:
        EnvironmentFault: AB327, one is not.
    """
    for extra in extras:
        if any(find_spec(module) is None for module in _EXTRAS[extra]):
            raise _not_installed(extra)


def lacking(error: ModuleNotFoundError) -> EnvironmentFault | None:
    """Return the error that says which extra a module is missing for; None for a module of none."""
    module = (error.name or "").partition(".")[0]
    return next((_not_installed(extra) for extra, modules in _EXTRAS.items() if module in modules), None)


def _not_installed(extra: Extra) -> EnvironmentFault:
    message = f"the extra {extra} of Anabranch is not installed: {_EXTRAS[extra][0]} is missing"
    return EnvironmentFault(Problem(_NOT_HERE, "", message, f"pip install 'anabranch[{extra}]'"))


class NotInstalled(Exception):
    """There is no such entry point, or it cannot be used; the message gives the reason."""


def load(group: str, name: str, what: str) -> Callable[..., Any]:
    """Return the class that an entry point leads to.

    Args:
        group: of the entry point.
        name: of the entry point.
        what: it is to be, for messages.

    Raises:
        NotInstalled: there is none or several, it cannot be imported, or is no class.
    """
    # Of what few files name, and what takes long to import.
    from importlib.metadata import entry_points  # noqa: PLC0415

    found = {point.value: point for point in entry_points(group=group, name=name)}
    if not found:
        known = sorted({point.name for point in entry_points(group=group)})
        there = f"there are {', '.join(known)}" if known else "no installed package has any"
        message = f"no entry point {name} in the group {group}; {there}"
        raise NotInstalled(message)
    if len(found) > 1:
        message = f"several packages have an entry point {name} in the group {group}: {', '.join(sorted(found))}"
        raise NotInstalled(message)
    ((value, point),) = found.items()
    try:
        made = point.load()
    # A module may do anything while it is imported, and call sys.exit too.
    except (Exception, SystemExit) as error:
        message = f"{what} {name} ({value}) cannot be imported: {told(error)}"
        raise NotInstalled(message) from None
    if not callable(made):
        message = f"{what} {name} ({value}) is no class: {type(made).__name__}"
        raise NotInstalled(message)
    called: Callable[..., Any] = made
    return called


def told(error: BaseException) -> str:
    """Return the message of a foreign error, with its type."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
