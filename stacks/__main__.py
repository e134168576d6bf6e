"""What `pulumi preview` and `pulumi up` run: the program of the stack that was chosen."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def home() -> Path:
    """Return the folder that holds `stacks` whole: this one, or, in a project that `apply` has made, Anabranch's."""
    if (ROOT / "stacks" / "program.py").exists():
        return ROOT
    # The checkout above need not be installed; where this file stands alone, Anabranch is.
    locate = importlib.import_module("reconciler.declare.documents.resources").locate
    found: Path = locate("stacks").parent
    return found


# Pulumi runs this folder as a script, and then its other files are no package.
sys.path.insert(0, str(home()))
starting = importlib.import_module("reconciler.starting")
starting.start_lightly()
starting.set_log_levels(None)
importlib.import_module("stacks.program").run(ROOT)
