"""Holds what commands print as JSON against its published schema, with no field that the schema does not know."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft7Validator

from reconciler.declare.documents.resources import report_schema_text

SCHEMAS = {"plan": "plan", "apply": "apply", "adopt": "apply", "destroy": "apply", "drift": "drift", "events": "events"}
"""By command, which schema its JSON has."""


def strict(node: Any) -> Any:
    """Return a schema that takes no field that it does not name: within a version fields are only added, and told."""
    if isinstance(node, list):
        return [strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    closed = {key: strict(value) for key, value in node.items()}
    return closed | {"additionalProperties": False} if "properties" in node and "type" in node else closed


@cache
def validator(command: str) -> Draft7Validator:
    """Return what holds the JSON of a command against its schema."""
    return Draft7Validator(strict(json.loads(report_schema_text(SCHEMAS[command]))))


def check(command: str, value: Any) -> None:
    """Make sure that what a command printed is as its schema says."""
    against = "\n".join(f"{error.json_path}: {error.message}" for error in validator(command).iter_errors(value))
    assert not against, against
