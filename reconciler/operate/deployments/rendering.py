"""Manifests of the data centres of kind `kubernetes`: made from a topology, and written to a folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from reconciler import __version__
from reconciler.model.base.errors import EnvironmentFault, Problem, Refused
from reconciler.model.base.files import UnreadableFile, read_text
from reconciler.model.declared.datacenter import DataCenter
from reconciler.model.declared.topology import Topology
from reconciler.operate.deployments.observed import version_at
from reconciler.operate.targets import InvalidArgument

HEADER = "# Written by `anabranch render`. Change the topology file, and render again.\n"
Rendered = Mapping[str, Mapping[str, str]]
"""By data centre, the text of each file by its path."""


def rendered(topology: Topology, datacenter: str | None = None, *, as_chart: bool = False) -> Rendered:
    """Return the manifests of a topology.

    Args:
        topology: what is declared.
        datacenter: name of the only data centre to return those of.
        as_chart: whether each data centre is a Helm chart.

    Raises:
        InvalidArgument: `datacenter`, there are no manifests of it, or of any data centre.
        Refused: AB770, what is declared cannot run in pods.
    """
    chosen = [
        one
        for one in topology.datacenters.values()
        if one.deployment.kind == "kubernetes" and datacenter in (None, one.name)
    ]
    if not chosen:
        which = "no data centre" if datacenter is None else f"no data centre {datacenter}"
        message = f"{which} of {topology.name} has a deployment of kind kubernetes"
        raise InvalidArgument(message, "datacenter")
    made, problems = {}, []
    for one in chosen:
        texts, found = _of_datacenter(topology, one, as_chart)
        made[one.name] = texts
        problems += found
    if problems:
        raise Refused(problems)
    return made


def _of_datacenter(topology: Topology, datacenter: DataCenter, as_chart: bool) -> tuple[dict[str, str], list[Problem]]:
    """Return the texts of a data centre, and what stands against them."""
    from reconciler.declare.rewrite import yaml_text
    from reconciler.deploy.kubernetes.chart import chart
    from reconciler.deploy.kubernetes.manifests import manifests, objections
    from reconciler.deploy.kubernetes.names import label
    from reconciler.deploy.kubernetes.pods import PodParts
    from reconciler.deploy.programs import spark_version
    from reconciler.plan.deployments import files_of, wanted_processes

    processes = wanted_processes(topology, datacenter, sys.executable, version_at)
    parts = PodParts(
        name=label(topology.name, datacenter.name),
        pods=datacenter.deployment.kubernetes,
        spark=spark_version(),
    )
    paths = {path for process in processes for path in files_of(topology, datacenter, process)}
    remedy = "add it to kubernetes of this deployment, or declare otherwise"
    problems = [
        Problem("AB770", datacenter.deployment.place, message, remedy)
        for message in objections(parts, processes, topology.files, paths)
    ]
    made = manifests(parts, processes, topology.files)
    if as_chart:
        # Build metadata, by which one chart follows another although the version of Anabranch is the same.
        texts = chart(parts, f"{__version__}+{topology.digest[:12]}", made, yaml_text)
    else:
        texts = {name: "---\n".join(map(yaml_text, objects)) for name, objects in made.items()}
    return {name: HEADER + text for name, text in texts.items()}, problems


def as_one(made: Rendered) -> str:
    """Return all manifests as one stream, as `kubectl apply --filename -` takes it."""
    from reconciler.deploy.kubernetes.manifests import KUSTOMIZATION

    named = [entry for files in made.values() for entry in files.items()]
    return "---\n".join(text.removeprefix(HEADER) for name, text in named if name != KUSTOMIZATION)


def differences(made: Rendered, folder: Path) -> list[str]:
    """Return what of a folder is not as it would be rendered, in words.

    Raises:
        EnvironmentFault: AB771, a file cannot be read.
    """
    found = []
    for datacenter, files in made.items():
        there = dict(_written(folder / datacenter))
        found += [f"{datacenter}/{name} is missing" for name in files if name not in there]
        found += [f"{datacenter}/{name} differs" for name, text in files.items() if there.get(name, text) != text]
        found += [f"{datacenter}/{name} is no longer made" for name in there if name not in files]
    return found


def write(made: Rendered, folder: Path) -> None:
    """Have these manifests in a folder, and none of an earlier rendering beside them; other files stay.

    Raises:
        EnvironmentFault: AB771, a file cannot be read or written, or is none that was rendered.
    """
    for datacenter, files in made.items():
        place = folder / datacenter
        there = dict(_written(place))
        if others := [name for name in files if (place / name).exists() and name not in there]:
            message = "it was not written by `anabranch render`"
            raise EnvironmentFault(Problem("AB771", str(place / others[0]), message, "move it, or name another folder"))
        try:
            place.mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                if there.get(name) != text:
                    (place / name).parent.mkdir(exist_ok=True)
                    (place / name).write_text(text, encoding="utf-8")
            for name in there.keys() - files.keys():
                (place / name).unlink()
        except OSError as error:
            raise _unusable(place, f"cannot be written: {error.strerror}") from None


def _written(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of what an earlier rendering has left in a folder."""
    try:
        for path in sorted([*folder.glob("*.yaml"), *folder.glob("templates/*.yaml")]):
            if (text := read_text(path)).startswith(HEADER):
                yield path.relative_to(folder).as_posix(), text
    except (OSError, UnreadableFile) as error:
        raise _unusable(folder, f"cannot be read: {error}") from None


def _unusable(folder: Path, why: str) -> EnvironmentFault:
    return EnvironmentFault(Problem("AB771", str(folder), why, "correct its rights, or name another folder"))
