"""What listens, as a Deployment and a Service: `metrics` and `serve`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reconciler.deploy.kubernetes.names import labels, metadata
from reconciler.deploy.kubernetes.pods import FOLDER, STATE, PodParts, container, pod
from reconciler.deploy.programs import arguments_of, listen_address
from reconciler.model.planning.deployments import Process

# Both read status topics alone: little, and the same for each.
_RESOURCES = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}}


def port_of(process: Process) -> int:
    """Return the port at which a process listens."""
    address = listen_address(process)
    assert address is not None, "in pods it is given"
    return address[1]


def server(process: Process, parts: PodParts) -> list[dict[str, Any]]:
    """Return the Deployment and the Service of a process that listens."""
    own, name, port = labels(parts.name, process.name), f"{parts.name}-{process.name}", port_of(process)
    digests = ".".join(sorted(digest for _, digest in process.files))
    is_tls = "--tls-certificate" in process.command
    main = container(
        process,
        parts,
        process.name,
        command=[process.python, "-m", "reconciler.cli.main"],
        args=arguments_of(process, Path(FOLDER), Path(STATE)),
        ports=[{"name": process.name, "containerPort": port}],
        resources=_RESOURCES,
        startupProbe=_probe("/livez", port, is_tls=is_tls, every=5, failures=24),
        livenessProbe=_probe("/livez", port, is_tls=is_tls, every=10, failures=3),
        readinessProbe=_probe("/readyz", port, is_tls=is_tls, every=10, failures=3),
    )
    template = {
        # With other files it is started anew: it reads them when it starts.
        "metadata": {"labels": own, "annotations": {"anabranch/files": digests}},
        "spec": pod(parts, [main]),
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(name, parts.pods.namespace, own),
        "spec": {"replicas": 1, "selector": {"matchLabels": own}, "template": template},
    }
    annotations = {"prometheus.io/scrape": "true", "prometheus.io/port": str(port)} if process.name == "metrics" else {}
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name, parts.pods.namespace, own, **({"annotations": annotations} if annotations else {})),
        "spec": {"selector": own, "ports": [{"name": process.name, "port": port, "targetPort": process.name}]},
    }
    return [deployment, service]


def _probe(path: str, port: int, *, is_tls: bool, every: int, failures: int) -> dict[str, Any]:
    scheme = {"scheme": "HTTPS"} if is_tls else {}
    return {
        "httpGet": {"path": path, "port": port, **scheme},
        "periodSeconds": every,
        "timeoutSeconds": 10,
        "failureThreshold": failures,
    }
