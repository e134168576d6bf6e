"""Whether the pods of a topology could run where they are declared: their images, and what the clusters would take."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping

from reconciler.model.base.errors import AnabranchError, Problem
from reconciler.model.declared.datacenter import DataCenter
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.health import Check
from reconciler.operate.deployments.rendering import manifests_of


def pod_checks(
    topology: Topology, targets: Collection[str], environ: Mapping[str, str] = os.environ
) -> Iterator[Check]:
    """Yield what stands against the pods of the data centres of some targets, as far as it can be seen from here.

    Args:
        topology: what is declared.
        targets: aliases of the clusters whose data centres are looked at.
        environ: the variables with which `kubectl` runs.
    """
    chosen = {topology.clusters[alias].datacenter for alias in targets}
    for name in sorted(chosen & topology.datacenters.keys()):
        datacenter = topology.datacenters[name]
        if datacenter.deployment.kind == "kubernetes":
            yield _image(datacenter)
            if (context := datacenter.deployment.kubernetes.context) is not None:
                yield from _admission(topology, datacenter, context, environ)


def _image(datacenter: DataCenter) -> Check:
    """Return whether the image is in its registry."""
    from reconciler.deploy.kubernetes.registry import look_up

    deployment = datacenter.deployment
    seen = look_up(deployment.kubernetes.image)
    remedy = "" if seen.level == "ok" else f"see kubernetes.image at {deployment.place}"
    return Check(f"image of {datacenter.name}", seen.level, seen.found, remedy)


def _admission(topology: Topology, datacenter: DataCenter, context: str, environ: Mapping[str, str]) -> Iterator[Check]:
    """Yield what the cluster of a context has against the manifests of a data centre."""
    from reconciler.deploy.kubernetes.admission import Admission
    from reconciler.deploy.kubernetes.kubectl import Kubectl

    deployment, what = datacenter.deployment, f"pods of {datacenter.name}"
    pods = deployment.kubernetes
    kubectl = Kubectl(context, pods.namespace, deployment.place, environ)
    try:
        made = manifests_of(topology, datacenter)
        if made.problems:
            yield from _failures(what, made.problems, deployment.place)
            return
        variables = {name for process in made.processes for name in process.variables}
        yield from Admission(what, pods, deployment.place, kubectl).checks(made.objects, variables, made.paths)
    except AnabranchError as error:
        yield from _failures(what, error.problems, deployment.place)


def _failures(what: str, problems: Iterable[Problem], place: str) -> Iterator[Check]:
    return (Check(what, "failure", one.message, f"{one.remedy}; see {place}") for one in problems)
