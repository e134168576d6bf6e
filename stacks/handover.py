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

from reconciler.model.base.errors import DeclaredInputError, Problem
from reconciler.model.base.files import read_json, write_private

VARIABLE = "ANABRANCH_HANDOVER"


@dataclass(frozen=True)
class Handover:
    """What the program must go by.

    Attributes:
        observed: path of the record of what was observed; nothing else may be declared.
        planned: aliases of the targets that the plan is for, as far as this data centre's part rests on them.
        imported: names of the topics' resources that stand already and are not in the stack; they are declared as they
            stand: some releases of Pulumi import nothing that differs, others change it at once.
        deleted: names of the topics' resources that the plan deletes: they are declared no more.
    """

    observed: str
    planned: tuple[str, ...]
    imported: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """Write it down, for this user alone."""
        write_private(path, json.dumps(asdict(self)))

    @classmethod
    def received(cls) -> Handover | None:
        """Return what was handed to this process, if anything was.

        Raises:
            DeclaredInputError: AB181, the file that the variable names is none of `write`.
        """
        path = os.environ.get(VARIABLE)
        if path is None:
            return None
        try:
            value = read_json(Path(path))
            observed, *lists = value["observed"], value["planned"], value["imported"], value["deleted"]
            if all(isinstance(one, str) for one in (observed, *lists[0], *lists[1], *lists[2])):
                return cls(observed, *map(tuple, lists))
            why = "holds something else than names"
        except (OSError, ValueError, LookupError, TypeError) as error:
            why = f"{error!s:.200}"
        message = f"is not what `anabranch apply` hands over: {why}"
        raise DeclaredInputError(Problem("AB181", path, message, f"unset {VARIABLE}, which `anabranch apply` sets"))


def handed_over_in(path: Path) -> Mapping[str, str]:
    """Return the environment in which the program finds what is written there."""
    return {VARIABLE: str(path)}
