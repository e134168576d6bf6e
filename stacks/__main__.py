"""What `pulumi preview` and `pulumi up` run: the program of the stack that was chosen."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Pulumi runs this folder as a script, and then its other files are no package.
sys.path.insert(0, str(ROOT))
importlib.import_module("stacks.program").run(ROOT)
