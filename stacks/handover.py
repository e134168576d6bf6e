"""What `anabranch apply` hands to the program that Pulumi runs for it: the plan's facts, and what is to be imported.

It travels in a file that an environment variable names, for one run of Pulumi alone. Whoever runs `pulumi up` by hand
hands nothing over, and the program declares what it observes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

VARIABLE = "ANABRANCH_HANDOVER"


@dataclass(frozen=True)
class Handover:
    """What the program must go by.

    Attributes:
        observed: path of the record of what was observed; nothing else may be declared.
        planned: aliases of the targets that the plan is for, as far as this data centre's part rests on them.
        imported: names of the topics' resources that stand already and are not in the stack; they are declared as they
            stand, as Pulumi imports nothing that differs.
    """

    observed: str
    planned: tuple[str, ...]
    imported: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """Write it down."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def received(cls) -> Handover | None:
        """Return what was handed to this process, if anything was."""
        path = os.environ.get(VARIABLE)
        if path is None:
            return None
        value = json.loads(Path(path).read_text(encoding="utf-8"))
        return cls(value["observed"], tuple(value["planned"]), tuple(value["imported"]))


def handed_over_in(path: Path) -> Mapping[str, str]:
    """Return the environment in which the program finds what is written there."""
    return {VARIABLE: str(path)}
