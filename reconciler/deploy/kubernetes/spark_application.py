"""What copies records, as a SparkApplication of Apache's operator: a driver that is started again for ever.

Source: https://apache.github.io/spark-kubernetes-operator (1.0): without these settings a job that never ends is
restarted never, or three times.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reconciler.deploy.kubernetes.names import labels, metadata
from reconciler.deploy.kubernetes.pods import FOLDER, GRACE, STATE, TOPOLOGY, PodParts, container, pod
from reconciler.deploy.programs import arguments_of
from reconciler.model.declared.deployment import KubernetesPods
from reconciler.model.planning.deployments import Process

PROGRAM = "run.py"
"""Name of the program in the ConfigMap."""
COPYING = "replicate"
"""The component of all pods that copy records."""
MEBIBYTE = 2**20
HEAP_MEBIBYTES = 256
"""Heap of the JVM beside the process, which does nothing but start it."""
# Spark finds the container that it adds to by its name.
_CONTAINER = "spark-kubernetes-driver"
_RESTART = {
    "restartPolicy": "Always",
    "maxRestartAttempts": 2**31 - 1,
    "restartBackoffMillis": 5_000,
    # A driver that has run for a minute is counted anew.
    "restartCounterResetMillis": 60_000,
}


def spark_application(process: Process, parts: PodParts) -> dict[str, Any]:
    """Return the SparkApplication of a process that copies records."""
    pods, own = parts.pods, labels(parts.name, COPYING) | {"anabranch/process": process.name}
    drain = [process.python, "-m", "reconciler.deploy.kubernetes.drain", str(GRACE), f"{TOPOLOGY}/{PROGRAM}"]
    driver = container(process, parts, _CONTAINER, lifecycle={"preStop": {"exec": {"command": drain}}})
    return {
        "apiVersion": "spark.apache.org/v1",
        "kind": "SparkApplication",
        "metadata": metadata(f"{parts.name}-{process.name}", pods.namespace, own),
        "spec": {
            "runtimeVersions": {"sparkVersion": parts.spark, "scalaVersion": "2.13"},
            "pyFiles": f"local://{TOPOLOGY}/{PROGRAM}",
            "driverArgs": arguments_of(process, Path(FOLDER), Path(STATE)),
            "sparkConf": _conf(process, pods, parts.name),
            "driverSpec": {
                "podTemplateSpec": {
                    "metadata": {"labels": {**own, "app.kubernetes.io/version": process.version}},
                    "spec": pod(parts, [driver]),
                }
            },
            "applicationTolerations": {
                "restartConfig": _RESTART,
                # Tasks run in the driver's pod.
                "instanceConfig": {"initExecutors": 0, "minExecutors": 0, "maxExecutors": 0},
                "resourceRetainPolicy": "OnFailure",
            },
        },
    }


def _conf(process: Process, pods: KubernetesPods, account: str) -> dict[str, str]:
    """Return Spark's settings: what the pod gets is what the process and its JVM need together."""
    cores = f"{round(pods.cpus * 1000)}m"
    return {
        "spark.kubernetes.container.image": pods.image,
        "spark.kubernetes.authenticate.driver.serviceAccountName": account,
        "spark.kubernetes.driver.request.cores": cores,
        "spark.kubernetes.driver.limit.cores": cores,
        "spark.driver.memory": f"{HEAP_MEBIBYTES}m",
        "spark.driver.memoryOverhead": f"{pods.memory // MEBIBYTE - HEAP_MEBIBYTES}m",
        "spark.pyspark.python": process.python,
        "spark.pyspark.driver.python": process.python,
        "spark.ui.enabled": "false",
    }
