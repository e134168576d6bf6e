"""Schemas of what manifests hold: that of a SparkApplication is the operator's own, and takes no field beside it."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
from jsonschema import Draft7Validator

GOLDEN = Path(__file__).parents[2] / "golden" / "kubernetes"
VERSION = "1.36"
_GROUP, _PLURAL = "spark.apache.org", "sparkapplications"


def crd() -> dict[str, Any]:
    """Return the CRD of a SparkApplication, with version v1 alone."""
    packed = (GOLDEN / "sparkapplication-v1.schema.json.gz").read_bytes()
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{_PLURAL}.{_GROUP}"},
        "spec": {
            "group": _GROUP,
            "scope": "Namespaced",
            "names": {"kind": "SparkApplication", "plural": _PLURAL, "singular": "sparkapplication"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": json.loads(gzip.decompress(packed))},
                }
            ],
        },
    }


def strict(schema: Any) -> Any:
    """Return a schema of a CRD as a JSON Schema that takes no field which it does not name.

    Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/
    """
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    made = {
        key: {name: strict(one) for name, one in value.items()} if key == "properties" else strict(value)
        for key, value in schema.items()
        if not key.startswith("x-kubernetes-") and key not in ("format", "default")
    }
    if "properties" in made and not schema.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    return made


@cache
def spark_application() -> Draft7Validator:
    """Return what validates a SparkApplication."""
    found = strict(crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    texts = {"type": "object", "additionalProperties": {"type": "string"}}
    # What every object has, whatever its schema names.
    found["properties"] |= {"apiVersion": {"const": f"{_GROUP}/v1"}, "kind": {"const": "SparkApplication"}}
    found["properties"]["metadata"] = {
        "type": "object",
        "additionalProperties": False,
        "required": ["name"],
        "properties": {"name": {"type": "string"}, "namespace": {"type": "string"}, "labels": texts},
    }
    return Draft7Validator(found)


def check(one: dict[str, Any]) -> None:
    """Check an object as the API server would, with no field that its kind does not have.

    Raises:
        Exception: of the validator, with the field.
    """
    match one["kind"]:
        case "SparkApplication":
            spark_application().validate(one)
        case "Kustomization":
            assert set(one) == {"apiVersion", "kind", "resources"}
        case _:
            kubernetes_validate.validate(one, VERSION, strict=True)
