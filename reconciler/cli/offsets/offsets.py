"""`anabranch offsets`: where readers and flows stand, and moving them; each of its commands is in a file of its own."""

from __future__ import annotations

from collections.abc import Callable

import typer

from reconciler.cli.helping import settings
from reconciler.cli.offsets.read import export, read
from reconciler.cli.offsets.translate import translate
from reconciler.cli.offsets.write import import_, write

COMMANDS: dict[str, Callable[..., None]] = {
    "read": read,
    "write": write,
    "export": export,
    "import": import_,
    "translate": translate,
}

offsets = typer.Typer(
    help="Read and move what consumer groups have committed, and where flows stand.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=settings(),
)
for _name, _command in COMMANDS.items():
    offsets.command(_name)(_command)
