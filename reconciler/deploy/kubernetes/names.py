"""Names and labels of Kubernetes from those of a topology."""

from __future__ import annotations

import hashlib
import re
from typing import Any

# A label of DNS (RFC 1123) has 63 characters; what is made of a name gets endings, also by Spark's operator.
_LONGEST = 40
_OTHER = re.compile(r"[^a-z0-9-]+")
KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")
"""What may be a key of a ConfigMap."""


def label(*words: str) -> str:
    """Return words as one DNS label; where it had to be changed or cut, with a digest that keeps it unique."""
    plain = "-".join(words)
    made = _OTHER.sub("-", plain.lower()).strip("-")
    if made == plain and len(made) <= _LONGEST:
        return made
    digest = hashlib.sha256("/".join(words).encode()).hexdigest()[:6]
    return f"{made[: _LONGEST - 7].strip('-')}-{digest}"


def labels(instance: str, component: str | None = None) -> dict[str, str]:
    """Return the labels of what belongs to a data centre, or to one of its processes.

    Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/
    """
    made = {"app.kubernetes.io/name": "anabranch", "app.kubernetes.io/instance": instance}
    return made | ({"app.kubernetes.io/component": component} if component else {})


def metadata(name: str, namespace: str, own: dict[str, str], **more: Any) -> dict[str, Any]:
    """Return the metadata of an object."""
    known = {**own, "app.kubernetes.io/managed-by": "anabranch"}
    return {"name": name, "namespace": namespace, "labels": known, **more}
