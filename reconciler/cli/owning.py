"""What `plan`, `apply` and `destroy` share about owners: the option that lets one take over from another."""

from __future__ import annotations

from typing import Annotated

import typer

TakeOver = Annotated[
    bool,
    typer.Option(
        "--take-over",
        help="Also where another owner's declaration of this topology is in force. Nothing else allows it.",
    ),
]
