"""The Pulumi program of one data centre, as `stacks/__main__.py` runs it.

It reads the same topology files as every command, derives the same remote topics, ACLs and processes, and declares
those of its own data centre. It changes nothing by itself, and it fails when a source cannot be read: a preview that
has not seen a source must not look like one whose topics are gone.

Stack configuration, namespace `anabranch`:

    topology    path of a topology file, or a list of paths, relative to the folder that holds Pulumi.yaml
    datacenter  the data centre; by default the stack's name
"""

from __future__ import annotations

import json
from pathlib import Path

import pulumi

from reconciler.declare import load
from reconciler.model.base.errors import AnabranchError, DeclaredInputError, Problem
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.desired import WholeTopic
from reconciler.observe.record import OLDEST_SECONDS, read_observed
from reconciler.observe.topology import observe
from reconciler.plan.ahead import build_plan_ahead
from reconciler.plan.copies.offsets import Observed
from reconciler.plan.whole import as_it_stands, whole_acls, whole_topics
from stacks.handover import Handover
from stacks.names import name_of
from stacks.processes import declared_processes
from stacks.providers import provider_for
from stacks.resources import DeployedProcess, declare
from stacks.state import TOPOLOGY_OUTPUT
from stacks.view import View, view_of

OBSERVED_FOLDER = Path("stacks/observed")


def run(root: Path) -> None:
    """Declare the stack.

    Args:
        root: the folder that holds Pulumi.yaml.

    Raises:
        pulumi.RunError: with every problem; Pulumi prints it without a traceback.
    """
    config = pulumi.Config("anabranch")
    datacenter = config.get("datacenter") or pulumi.get_stack()
    try:
        topology = load(tuple(root / path for path in _paths(config.require("topology"))), warn=_warn)
        _declare(topology, datacenter, root)
    except AnabranchError as error:
        raise pulumi.RunError(str(error)) from None


def clusters_in(topology: Topology, datacenter: str) -> tuple[str, ...]:
    """Return the clusters of a data centre, those included into which no flow leads any longer."""
    return tuple(alias for alias, cluster in topology.clusters.items() if cluster.datacenter == datacenter)


def _declare(topology: Topology, datacenter: str, root: Path) -> None:
    targets = clusters_in(topology, datacenter)
    if not targets:
        raise _no_such_datacenter(topology, datacenter)
    handover = Handover.received()
    observed = _observed(topology, targets, root / OBSERVED_FOLDER / f"{datacenter}.json", handover)
    view = _view(topology, observed, targets, handover)
    imported = handover.imported if handover else ()
    declare(
        [_importable(topic, observed) if name_of(topic) in imported else topic for topic in view.topics],
        view.acls,
        {alias: provider_for(topology.clusters[alias]) for alias in targets},
        imported,
    )
    for name, inputs in declared_processes(topology, datacenter).items():
        DeployedProcess(name, inputs)
    names = {alias: [topic.name for topic in view.topics if topic.cluster == alias] for alias in targets}
    pulumi.export("topics", names)
    # By this the next apply knows whose stack it is.
    pulumi.export(TOPOLOGY_OUTPUT, topology.name)


def _view(topology: Topology, observed: Observed, targets: tuple[str, ...], handover: Handover | None) -> View:
    """Return what is to be declared: what the plan sees that is carried out, else what the clusters ask for now."""
    if handover is None:
        return View(whole_topics(topology, observed, targets), whole_acls(topology, observed, targets))
    plan = build_plan_ahead(topology, observed, handover.planned)
    return view_of(topology, observed, targets, plan, handover.deleted)


def _observed(topology: Topology, targets: tuple[str, ...], path: Path, handover: Handover | None) -> Observed:
    """Return what the plan has seen, and without a plan what there is now.

    Raises:
        DeclaredInputError: AB181, what was handed over is not about this declaration, or a record is too old.
    """
    needed = {*targets, *(flow.source for flow in topology.flows_into(targets))}
    if handover is None:
        recorded = read_observed(path, topology, needed, OLDEST_SECONDS)
    else:
        recorded = read_observed(Path(handover.observed), topology, needed)
    if recorded is None and handover is not None:
        message = "was written for another declaration than the files that this stack reads"
        raise DeclaredInputError(Problem("AB181", handover.observed, message, "correct anabranch:topology"))
    return recorded or observe(topology, targets, resting_may_be_away=True)


def _importable(topic: WholeTopic, observed: Observed) -> WholeTopic:
    return as_it_stands(topic, observed[topic.cluster]) or topic


def _no_such_datacenter(topology: Topology, datacenter: str) -> DeclaredInputError:
    known = ", ".join(sorted({cluster.datacenter for cluster in topology.clusters.values()}))
    return DeclaredInputError(
        Problem(
            "AB182",
            f"stack {pulumi.get_stack()}",
            f"no cluster of {topology.name} stands in data centre {datacenter}; there are {known}",
            "name the stack after a data centre, or set anabranch:datacenter",
        )
    )


def _paths(value: str) -> list[str]:
    """Read a path, or a list of paths, which Pulumi hands over as JSON."""
    paths: list[str] = json.loads(value) if value.startswith("[") else [value]
    return paths


def _warn(problem: Problem) -> None:
    pulumi.log.warn(str(problem))
