"""`anabranch docs`: the pages of the documentation, as this release has them."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from reconciler.cli.common import stdout_console


def names(incomplete: str) -> list[str]:
    """Return the names of pages that begin with what is typed."""
    from reconciler.declare.documents.resources import pages

    return [name for name in pages() if name.startswith(incomplete)]


def docs(
    page: Annotated[
        str | None,
        typer.Argument(metavar="[PAGE]", autocompletion=names, help="Its name; without one, all are listed."),
    ] = None,
) -> None:
    """Print a page of the documentation of this release, or list the pages."""
    from reconciler.declare.documents.resources import pages

    known = pages()
    console = stdout_console()
    if page is None:
        width = max(map(len, known))
        for name, path in known.items():
            title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            console.print(f"{name:<{width}}  {title}")
        return
    if page not in known:
        from difflib import get_close_matches

        near = get_close_matches(page, known, n=3, cutoff=0.5)
        meant = f"; did you mean {' or '.join(near)}?" if near else "; `anabranch docs` lists them"
        message = f"there is no page {page}{meant}"
        raise typer.BadParameter(message, param_hint="PAGE")
    text = known[page].read_text(encoding="utf-8")
    if not console.is_terminal:
        sys.stdout.write(text)
        return
    from rich.markdown import Markdown

    console.print(Markdown(text))
