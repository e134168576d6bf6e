"""Finds the files that are no Python: the schema, the examples, the Pulumi program, the reference of error codes.

In a checkout they lie at the repository's top; in an installed package under `reconciler/_data`. The commands `schema`,
`explain` and `demo`, the validator and the Pulumi provisioner find them here; no other module depends on that.
"""

from __future__ import annotations

import json
from collections import Counter
from importlib.resources import files
from pathlib import Path

SCHEMA = "topology/schema/v1.json"
REPORTS = "topology/schema/reports-v1.json"
EXAMPLES = "topology/examples"
STACKS = "stacks"
DOCS = "docs"
ERRORS = f"{DOCS}/reference/errors.md"


def schema_text() -> str:
    """Return the JSON Schema of topology files, as it is written."""
    return locate(SCHEMA).read_text(encoding="utf-8")


def report_schema_text(command: str) -> str:
    """Return the JSON Schema of what a command prints as JSON.

    Args:
        command: `plan`, `apply` (and likewise `adopt` and `destroy`), `drift` or `events`.
    """
    known = json.loads(locate(REPORTS).read_text(encoding="utf-8"))
    one = {
        "$schema": known["$schema"],
        "title": f"what `anabranch {command} --format json` prints",
        "allOf": [{"$ref": f"#/definitions/{command}"}],
        "definitions": known["definitions"],
    }
    return json.dumps(one, indent=2) + "\n"


def errors_text() -> str:
    """Return the reference of error codes, as it is written."""
    return locate(ERRORS).read_text(encoding="utf-8")


def examples() -> dict[str, Path]:
    """Return the example topologies by name, such as `fan-out`."""
    return {path.stem: path for path in sorted(locate(EXAMPLES).glob("*.yaml"))}


def pages() -> dict[str, Path]:
    """Return the pages of the documentation by name: `status`, `deploy` of the first page of a folder, `deploy/local`.

    A name that several folders have stands with its folder alone.
    """
    root = locate(DOCS)
    # Decisions, which have numbers, are behind their index.
    there = [path for path in root.rglob("*.md") if not path.name[0].isdecimal()]
    found = {path.relative_to(root).with_suffix("").as_posix().removesuffix("/README"): path for path in there}
    names = Counter(name.rpartition("/")[2] for name in found)
    kept = {name if names[last := name.rpartition("/")[2]] > 1 else last: path for name, path in found.items()}
    return dict(sorted(kept.items()))


def stacks_folder() -> Path:
    """Return the folder of the Pulumi program."""
    return locate(STACKS)


def locate(relative: str) -> Path:
    """Return the path of a packaged file or folder.

    Raises:
        FileNotFoundError: neither the checkout nor the installed package has it.
    """
    package = Path(str(files("reconciler")))
    candidates = (package / "_data" / relative, package.parent / relative)
    for candidate in candidates:
        if candidate.exists():
            return candidate
    message = f"{relative} is missing from this installation: looked at {', '.join(map(str, candidates))}"
    raise FileNotFoundError(message)
