"""`--target`: a command for some remote topics alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Annotated

import typer

from reconciler.model.base.text import shown

_OPTION = "--target"
_SHOWN = 3

Topics = Annotated[
    list[str] | None,
    typer.Option(_OPTION, metavar="TOPIC", help="Only this remote topic, by its name at the target; may be repeated."),
]


def check_names(names: Sequence[str], known: Collection[str]) -> None:
    """Make sure that every name is one that is known.

    Args:
        names: what `--target` names.
        known: remote topics.

    Raises:
        typer.BadParameter: some are not; those that are nearly the same are named.
    """
    for name in names:
        if name in known:
            continue
        near = get_close_matches(name, sorted(known), n=_SHOWN, cutoff=0.6)
        meant = f"; did you mean {' or '.join(map(shown, near))}?" if near else ""
        message = f"no remote topic {name} is asked for, or ours, at these clusters{meant}"
        raise typer.BadParameter(message, param_hint=_OPTION)
