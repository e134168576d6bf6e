"""What a process of ours does before it imports the rest. Programs of users that import us do none of it."""

from __future__ import annotations

import sys


def start_lightly() -> None:
    """Leave out of this process what takes long to import and is not needed.

    jsonschema imports what checks formats, of which our schemas have none. One such package, which other programs may
    have brought into the environment, takes more than a second of CPU time.
    """
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
