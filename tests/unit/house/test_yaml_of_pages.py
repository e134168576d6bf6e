"""Every piece of YAML in the documentation has a place in a topology file, by the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from reconciler.declare.documents.resources import schema_text

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CLUSTER = {"bootstrap": ["b1.example:9092"]}
FLOW = {"from": "us-east", "to": "eu-west"}
FILE = {"version": 1, "name": "payments", "clusters": {"us-east": CLUSTER, "eu-west": CLUSTER}}
# What stands in no topology file: objects of Kubernetes, and comments alone.
OTHERS = {"apiVersion", "kind"}
VALIDATOR = Draft7Validator(json.loads(schema_text()))


def pieces() -> Iterator[tuple[str, int, str]]:
    for path in sorted(DOCS.rglob("*.md")):
        for number, text in enumerate(BLOCK.findall(path.read_text(encoding="utf-8"))):
            yield path.relative_to(DOCS).as_posix(), number, text


def placed(piece: Any) -> Iterator[dict[str, Any]]:
    """Yield files in which a piece stands: as a file, in a flow, in a cluster, in a list of flows or patterns."""
    if isinstance(piece, dict):
        yield {**FILE, **piece, "clusters": {**FILE["clusters"], **(piece.get("clusters") or {})}}  # type: ignore[dict-item]
        yield {**FILE, "flows": [{**FLOW, **piece}]}
        yield {**FILE, "clusters": {"us-east": {**CLUSTER, **piece}, "eu-west": CLUSTER}}
        yield {**FILE, "clusters": {"us-east": {**CLUSTER, "security": piece}, "eu-west": CLUSTER}}
    else:
        yield {**FILE, "flows": piece}
        yield {**FILE, "replication": piece}


@pytest.mark.parametrize(("page", "number", "text"), list(pieces()), ids=lambda value: str(value)[:40])
def test_it_has_a_place(page: str, number: int, text: str) -> None:
    piece = YAML(typ="safe", pure=True).load(text)
    if piece is None or (isinstance(piece, dict) and piece.keys() >= OTHERS):
        return
    problems = [
        [f"{error.json_path}: {error.message}" for error in VALIDATOR.iter_errors(file)] for file in placed(piece)
    ]
    assert any(not found for found in problems), (page, number, min(problems, key=len))


def test_enough_is_looked_at() -> None:
    assert len(list(pieces())) > 15
