"""Declared deployments become values of the model, with checks that the schema cannot express.

The loader calls it through `datacenters`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from reconciler.declare.documents import codes
from reconciler.declare.documents.located import Located, SourcePlace
from reconciler.declare.documents.quantities import byte_count
from reconciler.model.declared.deployment import (
    NO_DEPLOYMENT,
    PLAIN_APPLICATIONS,
    PLAIN_DRIVERS,
    PLAIN_PODS,
    Deployment,
    KubernetesPods,
    SparkDrivers,
    SystemdUnits,
    YarnApplications,
)

_OPTIONS = ("listen", "mirror-maker-names", "drift-every", "tls-certificate", "tls-key")


def build(place: SourcePlace) -> Deployment:
    """Return the deployment that the mapping at `place` declares, which may be missing; it has passed the schema."""
    if place.value is None:
        return NO_DEPLOYMENT
    fields = cast("dict[str, Any]", place.value)
    units = fields.get("systemd") or {}
    memory, cpus = units.get("memory"), units.get("cpus")
    drivers = fields.get("standalone") or {}
    return Deployment(
        kind=fields["kind"],
        folder=fields.get("folder", ""),
        host=fields.get("host"),
        python=fields.get("python"),
        environment=tuple(fields.get("environment", ())),
        processes=int(fields.get("processes", 1)),
        metrics=_options(fields.get("metrics")),
        serve=_options(fields.get("serve")),
        systemd=SystemdUnits(
            scope=units.get("scope", "system"),
            user=units.get("user", "anabranch"),
            environment_file=units.get("environment-file"),
            memory=None if memory is None else byte_count(memory),
            cpus=None if cpus is None else float(cpus),
        ),
        standalone=SparkDrivers(
            rest=drivers.get("rest"),
            web=drivers.get("web"),
            cores=int(drivers.get("cores", PLAIN_DRIVERS.cores)),
            memory=byte_count(drivers.get("memory", PLAIN_DRIVERS.memory)),
            environment_file=drivers.get("environment-file"),
        ),
        kubernetes=_pods(fields.get("kubernetes") or {}),
        yarn=_applications(fields.get("yarn") or {}),
        place=place.where,
    )


def _applications(fields: dict[str, Any]) -> YarnApplications:
    return YarnApplications(
        resource_managers=tuple(one.rstrip("/") for one in fields.get("resource-managers", ())),
        configuration=fields.get("configuration"),
        archive=fields.get("archive"),
        queue=fields.get("queue"),
        cores=int(fields.get("cores", PLAIN_APPLICATIONS.cores)),
        memory=byte_count(fields.get("memory", PLAIN_APPLICATIONS.memory)),
        environment_file=fields.get("environment-file"),
    )


def _pods(fields: dict[str, Any]) -> KubernetesPods:
    return KubernetesPods(
        namespace=fields.get("namespace", PLAIN_PODS.namespace),
        image=fields.get("image", ""),
        secret=fields.get("secret"),
        mounts=tuple(sorted((path.rstrip("/"), name) for path, name in fields.get("mounts", {}).items())),
        pull_secret=fields.get("pull-secret"),
        context=fields.get("context"),
        memory=byte_count(fields.get("memory", PLAIN_PODS.memory)),
        cpus=float(fields.get("cpus", PLAIN_PODS.cpus)),
    )


def check(place: SourcePlace) -> Iterator[Located]:
    """Yield what is wrong with a deployment that has passed the schema."""
    if not isinstance(place.value, dict):
        return
    kind = place.value.get("kind")
    if kind == "kubernetes":
        yield from _check_pods(place, place.value)
    elif kind != "none" and "folder" not in place.value:
        message = f"expected a folder, as kind {kind} keeps files, logs and state in one; found none"
        yield place.problem(codes.MISSING, message, "add folder: /absolute/path", at_key=True)
    if kind == "yarn" and "yarn" not in place.value:
        message = "expected yarn with resource-managers, which are asked what runs; found none"
        yield place.problem(codes.MISSING, message, "add yarn: {resource-managers: [http://host:8088]}", at_key=True)
    for key, of_kind, remedy in (
        ("environment", "local", f"name a file with the variables as {kind}.environment-file"),
        ("systemd", "systemd", "remove it, or choose kind: systemd"),
        ("standalone", "standalone", "remove it, or choose kind: standalone"),
        ("kubernetes", "kubernetes", "remove it, or choose kind: kubernetes"),
        ("yarn", "yarn", "remove it, or choose kind: yarn"),
    ):
        if key in place.value and kind not in ("none", of_kind):
            message = f"{key} is of kind {of_kind}; this deployment has kind {kind}"
            yield (place / key).problem(codes.WRONG_VALUE, message, remedy, at_key=True)
    for key in ("metrics", "serve"):
        if kind in ("standalone", "yarn") and key in place.value:
            message = f"kind {kind} runs what copies records; found {key}"
            remedy = f"remove it, and run anabranch {key} as a service of your own: it needs no place near the flows"
            yield (place / key).problem(codes.WRONG_VALUE, message, remedy, at_key=True)
    units = place / "systemd"
    if isinstance(units.value, dict) and units.value.get("scope") == "user" and "user" in units.value:
        message = "units of a user run as that user; found another name"
        yield (units / "user").problem(codes.WRONG_VALUE, message, "remove it, or scope: user", at_key=True)
    serve = place / "serve"
    if isinstance(serve.value, dict) and ("tls-certificate" in serve.value) != ("tls-key" in serve.value):
        message = "tls-certificate and tls-key belong together; found one of them"
        yield serve.problem(codes.MISSING, message, "add the other one", at_key=True)


def _check_pods(place: SourcePlace, fields: Mapping[str, Any]) -> Iterator[Located]:
    """Yield what is wrong with a deployment of pods."""
    if "kubernetes" not in fields:
        message = "expected kubernetes with an image, as pods are made of one; found none"
        yield place.problem(codes.MISSING, message, "add kubernetes: {image: NAME:TAG}", at_key=True)
    for key in ("folder", "host"):
        if key in fields:
            message = f"manifests are of no machine; found {key}"
            yield (place / key).problem(codes.WRONG_VALUE, message, f"remove {key}", at_key=True)
    serve = place / "serve"
    needed = ("tokens", "tls-certificate", "tls-key")
    if isinstance(serve.value, dict) and (missing := [key for key in needed if key not in serve.value]):
        message = f"other pods reach the service, so it needs tokens and TLS; {' and '.join(missing)} is missing"
        yield serve.problem(codes.MISSING, message, "add tokens, and tls-certificate and tls-key in one of mounts")


def crossings(datacenters: Mapping[str, SourcePlace], clusters: Mapping[str, int]) -> Iterator[Located]:
    """Yield what is wrong with the deployments of several data centres together, and with their clusters.

    Args:
        datacenters: the place of each declared one by name.
        clusters: by data centre, how many clusters in it flows lead into.
    """
    folders: dict[object, SourcePlace] = {}
    for name, place in datacenters.items():
        deploy = place / "deploy"
        if not isinstance(deploy.value, dict) or deploy.value.get("kind") == "none":
            continue
        if deploy.value.get("kind") == "standalone" and (place / "spark" / "master").value is None:
            message = "kind standalone runs drivers on the cluster of spark.master; found none"
            yield deploy.problem(codes.MISSING, message, "add spark: {master: spark://host:7077} to the data centre")
        folder = deploy / "folder"
        if folder.value is not None and (first := folders.setdefault(folder.value, folder)) is not folder:
            message = f"expected a folder for each data centre; found that of {first.line}"
            yield folder.problem(codes.DUPLICATE, message, "name another folder")
        wanted, there = deploy.value.get("processes", 1), clusters.get(name, 0)
        if isinstance(wanted, int) and wanted > max(1, there):
            message = f"flows lead into {there} clusters of {name}, which are dealt to the processes; found {wanted}"
            yield (deploy / "processes").problem(codes.WRONG_VALUE, message, f"write {max(1, there)} or fewer")


def _options(fields: dict[str, Any] | None) -> tuple[str, ...] | None:
    """Return options of a command from fields that are named as these."""
    if fields is None:
        return None
    found = [one for key in _OPTIONS if key in fields for one in (f"--{key}", str(fields[key]))]
    found += [one for token in fields.get("tokens", ()) for one in ("--token", str(token))]
    return tuple(found)
