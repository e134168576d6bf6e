"""What users install beside Anabranch and files name: entry points, never modules.

Only what is installed can run, therefore.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any


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
