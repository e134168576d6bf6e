"""`anabranch offsets`: where readers and flows stand, and moving them; each of its commands is in a file of its own."""

from __future__ import annotations

from collections.abc import Callable

from reconciler.cli.helping import group
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

offsets = group("Read and move what consumer groups have committed, and where flows stand.")
for _name, _command in COMMANDS.items():
    offsets.command(_name)(_command)
