"""Holds one document against the JSON Schema.

The loader calls `check`. The schema is the only rule: nothing here accepts or refuses on its own. What jsonschema
reports becomes violations with places; `violations` words them for users.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any, cast

from jsonschema import Draft7Validator, ValidationError

from reconciler.declare.documents.located import Document
from reconciler.declare.documents.resources import schema_text
from reconciler.declare.documents.violations import Finding, Violation, translate


def check(document: Document) -> list[Finding]:
    """Return every violation of the schema in `document`, each once."""
    violations = [_violation(document, error) for error in _validator().iter_errors(document.value)]
    findings = [finding for violation in violations for finding in translate(violation)]
    return list({finding.located: finding for finding in findings}.values())


@cache
def _validator() -> Draft7Validator:
    return Draft7Validator(json.loads(schema_text()))


def _violation(document: Document, error: ValidationError) -> Violation:
    alternatives: dict[object, list[Violation]] = {}
    for nested in error.context or ():
        alternatives.setdefault(nested.schema_path[0], []).append(_violation(document, nested))
    schema = cast("dict[str, Any]", error.schema)
    return Violation(document.at(*error.absolute_path), str(error.validator), schema, alternatives)
