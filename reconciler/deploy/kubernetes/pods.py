"""What all pods of a data centre share: volumes, variables, and how little they may do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from reconciler.model.declared.deployment import KubernetesPods
from reconciler.model.planning.deployments import Process

FOLDER = "/etc/anabranch"
"""What is the folder of a data centre elsewhere."""
TOPOLOGY = f"{FOLDER}/topology"
"""The folder with the topology files."""
STATE = "/var/lib/anabranch"
"""The folder in which processes write."""
GRACE = 60
"""Seconds that a process gets to end."""
_USER = 10001


class PodParts(NamedTuple):
    """What the pods of a data centre are made of.

    Attributes:
        name: of the data centre, as a label.
        pods: as declared.
        spark: version of Spark.
    """

    name: str
    pods: KubernetesPods
    spark: str


def secret_volumes(pods: KubernetesPods) -> list[tuple[str, tuple[str, str]]]:
    """Return the name of each volume with a Secret, the folder where it is mounted, and the name of the Secret."""
    return [(f"secret-{number}", mount) for number, mount in enumerate(pods.mounts, 1)]


def variables(process: Process, pods: KubernetesPods) -> list[dict[str, Any]]:
    """Return the variables of a process: those that it names from the Secret, and where it may write."""
    from_secret = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": pods.secret, "key": name}}} for name in process.variables
    ]
    own = {"HOME": STATE, "PYSPARK_PYTHON": process.python, "PYTHONUNBUFFERED": "1", "ANABRANCH_LOG_FORMAT": "json"}
    return [*({"name": name, "value": value} for name, value in own.items()), *from_secret]


def mounts(pods: KubernetesPods) -> list[dict[str, Any]]:
    """Return where volumes are in a container."""
    secrets = [{"name": name, "mountPath": path, "readOnly": True} for name, (path, _) in secret_volumes(pods)]
    return [
        {"name": "topology", "mountPath": TOPOLOGY, "readOnly": True},
        {"name": "state", "mountPath": STATE},
        {"name": "tmp", "mountPath": "/tmp"},
        *secrets,
    ]


def volumes(parts: PodParts) -> list[dict[str, Any]]:
    """Return the volumes of a pod."""
    secrets = [
        # Readable for the group of the pod alone.
        {"name": name, "secret": {"secretName": secret, "defaultMode": 0o440}}
        for name, (_, secret) in secret_volumes(parts.pods)
    ]
    return [
        {"name": "topology", "configMap": {"name": f"{parts.name}-topology"}},
        {"name": "state", "emptyDir": {}},
        {"name": "tmp", "emptyDir": {}},
        *secrets,
    ]


def pod(parts: PodParts, containers: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return the specification of a pod: no root, no token of the API server."""
    pull = {"imagePullSecrets": [{"name": parts.pods.pull_secret}]} if parts.pods.pull_secret else {}
    return {
        "serviceAccountName": parts.name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE + 10,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **pull,
        "containers": list(containers),
        "volumes": volumes(parts),
    }


def container(process: Process, parts: PodParts, name: str, **more: Any) -> dict[str, Any]:
    """Return a container of a process, whose file system is read-only but for its volumes."""
    return {
        "name": name,
        "image": parts.pods.image,
        "env": variables(process, parts.pods),
        "volumeMounts": mounts(parts.pods),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        **more,
    }
