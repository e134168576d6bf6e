"""All manifests of a data centre, from its processes. Pure: no cluster is asked, and no Secret is made or read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from reconciler.deploy.kubernetes import run
from reconciler.deploy.kubernetes.names import KEY, labels, metadata
from reconciler.deploy.kubernetes.pods import TOPOLOGY, PodParts
from reconciler.deploy.kubernetes.servers import port_of, server
from reconciler.deploy.kubernetes.spark_application import COPYING, PROGRAM, spark_application
from reconciler.model.base.files import read_text
from reconciler.model.declared.topology import TopologyFile
from reconciler.model.planning.deployments import Process

KUSTOMIZATION = "kustomization.yaml"
"""The file that names the others, and holds no object."""
# Of a ConfigMap (https://kubernetes.io/docs/concepts/configuration/configmap/).
_MOST_BYTES = 2**20


def manifests(
    parts: PodParts, processes: Sequence[Process], files: Collection[TopologyFile]
) -> dict[str, list[dict[str, Any]]]:
    """Return the objects by the name of the file for them."""
    made: dict[str, list[dict[str, Any]]] = {
        "service-account.yaml": [_account(parts)],
        "topology.yaml": [_config_map(parts, files)],
        "network-policy.yaml": [_network_policy(parts, processes)],
    }
    if (copying := sum(process.command[0] == COPYING for process in processes)) > 1:
        made["disruption-budget.yaml"] = [_disruption_budget(parts, copying)]
    for process in processes:
        is_copying = process.command[0] == COPYING
        made[f"{process.name}.yaml"] = [spark_application(process, parts)] if is_copying else server(process, parts)
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": sorted(made),
    }
    return made | {KUSTOMIZATION: [kustomization]}


def objections(
    parts: PodParts, processes: Sequence[Process], files: Collection[TopologyFile], paths: Collection[str]
) -> Iterator[str]:
    """Yield what stands against running processes in pods.

    Args:
        parts: what their pods are made of.
        processes: what is to run.
        files: the topology files.
        paths: of the files that the topology refers to.
    """
    needed = sorted({name for process in processes for name in process.variables})
    if needed and parts.pods.secret is None:
        yield f"{', '.join(needed)} is needed, and no kubernetes.secret is named that has it"
    folders = {path for path, _ in parts.pods.mounts}
    for path in sorted(path for path in paths if str(Path(path).parent) not in folders):
        yield f"{path} is needed, and {Path(path).parent} is in no kubernetes.mounts"
    for folder in sorted(folders):
        if f"{folder}/".startswith(f"{TOPOLOGY}/"):
            yield f"{folder} is where the topology files are; mount the Secret elsewhere"
    for file in files:
        if not KEY.fullmatch(file.name) or file.name == PROGRAM:
            yield f"{file.name} is no name that a file in a ConfigMap can have"
    if (size := sum(len(file.text.encode()) for file in files)) > _MOST_BYTES:
        yield f"the topology files have {size} bytes, and a ConfigMap {_MOST_BYTES} at most"


def _about(parts: PodParts, ending: str = "") -> dict[str, Any]:
    """Return the metadata of what all processes share."""
    return metadata(f"{parts.name}{ending}", parts.pods.namespace, labels(parts.name))


def _account(parts: PodParts) -> dict[str, Any]:
    """Return the account of all pods. It needs no rights: tasks run in the pods that there are."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _about(parts),
        "automountServiceAccountToken": False,
    }


def _config_map(parts: PodParts, files: Collection[TopologyFile]) -> dict[str, Any]:
    data = {file.name: file.text for file in sorted(files, key=lambda file: file.name)}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _about(parts, "-topology"),
        "data": data | {PROGRAM: read_text(Path(run.__file__))},
    }


def _network_policy(parts: PodParts, processes: Sequence[Process]) -> dict[str, Any]:
    """Return the rule that pods are connected to only where they listen; brokers are wherever they advertise."""
    ports = [{"protocol": "TCP", "port": port_of(one)} for one in processes if one.command[0] != COPYING]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _about(parts),
        "spec": {
            "podSelector": {"matchLabels": labels(parts.name)},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": ports}] if ports else [],
        },
    }


def _disruption_budget(parts: PodParts, copying: int) -> dict[str, Any]:
    """Return what keeps drained nodes from ending more than one of several pods that copy records.

    Of pods without a controller that scales, only a number that must stay can be given
    (https://kubernetes.io/docs/tasks/run-application/configure-pdb/#arbitrary-controllers-and-selectors).
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _about(parts),
        "spec": {"minAvailable": copying - 1, "selector": {"matchLabels": labels(parts.name, COPYING)}},
    }
