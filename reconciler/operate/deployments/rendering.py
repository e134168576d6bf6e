"""Manifests of the data centres of kind `kubernetes`: made from a topology, and written to a folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reconciler import __version__
from reconciler.model.base.errors import EnvironmentFault, Problem, Refused
from reconciler.model.base.files import UnreadableFile, read_text
from reconciler.model.declared.datacenter import DataCenter
from reconciler.model.declared.topology import Topology
from reconciler.operate.deployments.observed import version_at
from reconciler.operate.targets import InvalidArgument

if TYPE_CHECKING:
    from reconciler.deploy.kubernetes.pods import PodParts
    from reconciler.model.planning.deployments import Process

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
        EnvironmentFault: AB327, as of `manifests_of`.
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
    made = {one.name: manifests_of(topology, one) for one in chosen}
    if problems := [problem for one in made.values() for problem in one.problems]:
        raise Refused(problems)
    return {name: _texts(topology, one, as_chart) for name, one in made.items()}


@dataclass(frozen=True)
class Manifests:
    """The manifests of a data centre.

    Attributes:
        parts: what its pods are made of.
        processes: what runs in them.
        paths: of the files that the topology refers to.
        files: the objects by the name of the file for them.
        problems: AB770, what stands against them.
    """

    parts: PodParts
    processes: tuple[Process, ...]
    paths: frozenset[str]
    files: Mapping[str, Sequence[dict[str, Any]]]
    problems: tuple[Problem, ...]

    @property
    def objects(self) -> list[dict[str, Any]]:
        """All that an API server takes."""
        from reconciler.deploy.kubernetes.manifests import KUSTOMIZATION

        return [one for name, objects in self.files.items() if name != KUSTOMIZATION for one in objects]


def manifests_of(topology: Topology, datacenter: DataCenter) -> Manifests:
    """Return the manifests of a data centre of kind `kubernetes`.

    Raises:
        EnvironmentFault: AB327, PySpark is not installed, whose version they name.
    """
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
    paths = frozenset(path for process in processes for path in files_of(topology, datacenter, process))
    remedy = "add it to kubernetes of this deployment, or declare otherwise"
    problems = tuple(
        Problem("AB770", datacenter.deployment.place, message, remedy)
        for message in objections(parts, processes, topology.files, paths)
    )
    return Manifests(parts, processes, paths, manifests(parts, processes, topology.files), problems)


def _texts(topology: Topology, made: Manifests, as_chart: bool) -> dict[str, str]:
    """Return the text of each file of a data centre."""
    from reconciler.declare.rewrite import yaml_text
    from reconciler.deploy.kubernetes.chart import chart

    if as_chart:
        # Build metadata, by which one chart follows another although the version of Anabranch is the same.
        texts = chart(made.parts, f"{__version__}+{topology.digest[:12]}", made.files, yaml_text)
    else:
        texts = {name: "---\n".join(map(yaml_text, objects)) for name, objects in made.files.items()}
    return {name: HEADER + text for name, text in texts.items()}


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
