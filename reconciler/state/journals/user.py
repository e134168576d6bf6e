"""The name of this process's user, as journals have it."""

from __future__ import annotations

import getpass
import os
import socket


def user() -> str:
    """Return `user@host`."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        # In a container a user may have no name.
        name = f"uid-{os.getuid()}"
    return f"{name}@{socket.gethostname()}"
