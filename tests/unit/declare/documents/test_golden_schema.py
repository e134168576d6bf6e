"""Every rule of the schema has a failing example, kept with the exact words that are said about it.

`tests/golden/schema/*.yaml` hold the examples; with `UPDATE_GOLDEN=1` in its environment, this test writes their
`expected` anew, to be read before it is committed.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from tests.unit.declare.declaring import place, refused

ROOT = Path(__file__).parents[4]
FOLDER = ROOT / "tests" / "golden" / "schema"
SCHEMA: dict[str, Any] = json.loads((ROOT / "topology" / "schema" / "v1.json").read_text(encoding="utf-8"))
# What says something of a value; the others describe, or lead on.
_RULES = frozenset(
    (
        *("type", "enum", "const", "pattern", "minLength", "maxLength", "minimum", "maximum", "required"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
        *("oneOf", "dependencies"),
    )
)
_NAMES = ("properties", "patternProperties", "definitions", "dependencies")


def files() -> list[Path]:
    return sorted(FOLDER.glob("*.yaml"))


def examples(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = YAML(typ="safe").load(path)
    return found


def rules(node: Any = SCHEMA, pointer: str = "") -> Iterator[tuple[str, int]]:
    """Yield each rule as `pointer keyword`, with what identifies the mapping that it stands in."""
    if isinstance(node, list):
        for number, item in enumerate(node):
            yield from rules(item, f"{pointer}/{number}")
    elif isinstance(node, dict):
        # The ways of a pattern are told by its `oneOf`, as one.
        if not pointer.endswith(tuple(f"/{name}" for name in _NAMES)) and "/oneOf/" not in pointer:
            for keyword in node:
                if keyword in _RULES or (keyword == "additionalProperties" and node[keyword] is False):
                    yield f"{pointer or '/'} {keyword}", id(node)
        for key, value in node.items():
            if key not in ("default", "examples"):
                yield from rules(value, f"{pointer}/{key}")


def broken(errors: Iterator[ValidationError]) -> Iterator[tuple[str, int]]:
    """Yield the keyword and the schema of each error, also of those behind an alternative."""
    for error in errors:
        yield str(error.validator), id(error.schema)
        yield from broken(iter(error.context or ()))


def told(folder: Path, document: str) -> list[str]:
    return [
        f"{place(problem, folder)} {problem.code}: {problem.message} → {problem.remedy}"
        for problem in refused(folder, document)
    ]


def test_every_rule_has_an_example_that_breaks_it() -> None:
    validator = Draft7Validator(SCHEMA)
    where = {(name.rpartition(" ")[2], identity): name for name, identity in rules()}
    seen: set[str] = set()
    for path in files():
        for example in examples(path):
            found = broken(validator.iter_errors(YAML(typ="safe").load(example["document"])))
            names = {where[one] for one in found if one in where}
            assert example["rule"] in names, f"{path.name}: no such rule is broken: {example['rule']}"
            seen.add(example["rule"])
    assert sorted(set(where.values()) - seen) == []


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_what_is_said_about_each_is_what_was_agreed(path: Path, tmp_path: Path) -> None:
    kept = examples(path)
    assert kept
    found = [{**example, "expected": told(tmp_path, example["document"])} for example in kept]
    if os.environ.get("UPDATE_GOLDEN") == "1":
        yaml = YAML()
        yaml.width = 1000
        written = io.StringIO()
        yaml.dump([{**one, "document": LiteralScalarString(one["document"])} for one in found], written)
        path.write_text(written.getvalue(), encoding="utf-8")
    for one, before in zip(found, kept, strict=True):
        assert one["expected"] == before["expected"] or os.environ.get("UPDATE_GOLDEN") == "1", one["rule"]
        assert one["expected"]
