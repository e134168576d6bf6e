"""The manifests of a data centre as a Helm chart: the same objects, with what differs between clusters as values.

Source: https://helm.sh/docs/topics/charts/ (charts of version 2).
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reconciler.deploy.kubernetes.manifests import KUSTOMIZATION
from reconciler.deploy.kubernetes.pods import PodParts, secret_volumes
from reconciler.deploy.kubernetes.spark_application import HEAP_MEBIBYTES, MEBIBYTE

_CORES = 'printf "%dm" (int .Values.milliCpus)'
_EXPRESSIONS = {
    "image": ".Values.image",
    "spark.kubernetes.container.image": ".Values.image",
    "spark.kubernetes.driver.request.cores": _CORES,
    "spark.kubernetes.driver.limit.cores": _CORES,
    "spark.driver.memoryOverhead": f'printf "%dm" (sub (int .Values.memoryMiB) {HEAP_MEBIBYTES})',
}
"""By keys of objects, what they have in a template."""


def chart(
    parts: PodParts, version: str, made: Mapping[str, Sequence[dict[str, Any]]], yaml_text: Callable[[Any], str]
) -> dict[str, str]:
    """Return the texts of a chart by their paths in it.

    Args:
        parts: what the pods are made of; these are the values.
        version: of what is deployed.
        made: the objects of the data centre, by name of the file.
        yaml_text: writes an object.
    """
    about = {
        "apiVersion": "v2",
        "name": parts.name,
        "description": "What copies into one data centre, and what serves it",
        "type": "application",
        "version": version,
        "appVersion": version,
    }
    templates = {
        f"templates/{name}": "---\n".join(_template(one, parts, yaml_text) for one in objects)
        for name, objects in made.items()
        if name != KUSTOMIZATION
    }
    return {"Chart.yaml": yaml_text(about), "values.yaml": yaml_text(_values(parts)), **templates}


def _values(parts: PodParts) -> dict[str, Any]:
    """Return what a chart is installed with by default."""
    pods = parts.pods
    return {
        "image": pods.image,
        "pullSecret": pods.pull_secret or "",
        "secret": pods.secret or "",
        "mounts": dict(pods.mounts),
        "memoryMiB": pods.memory // MEBIBYTE,
        "milliCpus": round(pods.cpus * 1000),
    }


def _template(one: dict[str, Any], parts: PodParts, yaml_text: Callable[[Any], str]) -> str:
    """Return the template of an object; it has the namespace that the chart is installed in."""
    made = copy.deepcopy(one)
    del made["metadata"]["namespace"]
    marks = _Marks(hashlib.sha256(yaml_text(made).encode()).hexdigest())
    marks.put_into(made, _paths(parts))
    # What a topology file has in double braces is text.
    text = yaml_text(made).replace("{{", '{{ "{{" }}')
    for mark, expression in marks.expressions.items():
        text = text.replace(mark, f"{{{{ {expression} | quote }}}}")
    return text


class _Marks:
    """Words that stand in an object for expressions, until its text is made.

    Args:
        unlike: begins every mark: a digest of the object, which the object cannot hold.

    Attributes:
        expressions: by their marks.
    """

    def __init__(self, unlike: str) -> None:
        self._unlike = unlike
        self.expressions: dict[str, str] = {}

    def put_into(self, value: Any, paths: Mapping[str, str]) -> None:
        """Put marks in place of what is a value of the chart.

        Args:
            value: the object, or a part of it.
            paths: by name of a volume, the folder where the Secret in it is mounted.
        """
        if isinstance(value, list):
            for inner in value:
                self.put_into(inner, paths)
        if not isinstance(value, dict):
            return
        for key, inner in value.items():
            if key in _EXPRESSIONS:
                self._put(value, key, _EXPRESSIONS[key])
            elif key == "secretKeyRef":
                self._put(inner, "name", ".Values.secret")
            elif key == "secret" and value["name"] in paths:
                self._put(inner, "secretName", f"index .Values.mounts {json.dumps(paths[value['name']])}")
            elif key == "imagePullSecrets":
                self._put(inner[0], "name", ".Values.pullSecret")
            elif key != "data":
                self.put_into(inner, paths)

    def _put(self, where: dict[str, Any], key: str, expression: str) -> None:
        mark = f"{self._unlike}x{len(self.expressions)}x"
        self.expressions[mark] = expression
        where[key] = mark


def _paths(parts: PodParts) -> dict[str, str]:
    """Return by name of a volume the folder where the Secret in it is mounted."""
    return {name: path for name, (path, _) in secret_volumes(parts.pods)}
