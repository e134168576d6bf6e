"""The processes that data centres run as declared, and the steps from what was found to these. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

from reconciler.model.declared.datacenter import DataCenter
from reconciler.model.declared.deployment import (
    Deployment,
    DeploymentKind,
    SparkDrivers,
    SystemdUnits,
    YarnApplications,
)
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.deployments import (
    CONF,
    FILES,
    GENERATIONS,
    DeployedProcess,
    DeploymentPlan,
    DeploymentsFound,
    DeploymentStep,
    DeployProcess,
    FactChange,
    Process,
    StopProcess,
    UpdateProcess,
    digest_of,
)
from reconciler.model.planning.drift import DriftedProcess

_TOKEN = "--token"
_OF_YARN = "spark.yarn."
_FILE_OPTIONS = ("--tls-certificate", "--tls-key")
BY_OTHERS = "`anabranch render` writes its manifests, and others apply them"
# Where an image has what pods run, and where they listen.
IN_IMAGE = "/opt/anabranch/bin/python"
# Where YARN unpacks an environment, seen from the folder of a container.
IN_ARCHIVE = "environment/bin/python"
_IN_PODS = {"metrics": "0.0.0.0:9404", "serve": "0.0.0.0:8083"}


def data_centre_of(topology: Topology, name: str) -> DataCenter:
    """Return a data centre, which need not have a declaration of its own."""
    return topology.datacenters.get(name, DataCenter(name))


def fed_clusters(topology: Topology, datacenter: str) -> tuple[str, ...]:
    """Return the aliases of the clusters of a data centre that enabled flows lead into."""
    return tuple(alias for alias in topology.targets if topology.clusters[alias].datacenter == datacenter)


def wanted_processes(
    topology: Topology, datacenter: DataCenter, python: str, version_of: Callable[[DeploymentKind, str], str]
) -> tuple[Process, ...]:
    """Return what a data centre is to run; nothing where no flow leads into it, or its deployment is of kind none.

    Args:
        topology: what is declared.
        datacenter: the data centre.
        python: path of the interpreter where none is declared.
        version_of: returns which version of Anabranch an interpreter has, by the kind of the deployment.
    """
    deployment, aliases = datacenter.deployment, fed_clusters(topology, datacenter.name)
    if deployment.kind == "none" or not aliases:
        return ()
    interpreter = deployment.python or _python_of(deployment) or python
    version = version_of(deployment.kind, interpreter)
    files = tuple((file.name, digest_of(file)) for file in sorted(topology.files, key=lambda file: file.name))
    processes = [
        Process(
            topology=topology.name,
            datacenter=datacenter.name,
            name=name,
            kind=deployment.kind,
            folder=deployment.folder,
            python=interpreter,
            version=version,
            command=command,
            files=files,
            limits=tuple(_limits(datacenter)),
        )
        for name, command in _commands(deployment, aliases)
    ]
    return tuple(replace(one, variables=_variables(topology, datacenter, one)) for one in processes)


def _python_of(deployment: Deployment) -> str | None:
    """Return the interpreter of what a deployment brings along; None where it brings none."""
    if deployment.kind == "kubernetes":
        return IN_IMAGE
    return IN_ARCHIVE if deployment.kind == "yarn" and deployment.yarn.archive is not None else None


def _commands(deployment: Deployment, aliases: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield name and arguments of each process; clusters are dealt to those that copy records, as evenly as it goes."""
    for number in range(deployment.processes):
        own = ",".join(aliases[number :: deployment.processes])
        name = "replicate" if number == 0 else f"replicate-{number + 1}"
        yield name, ("replicate", "--clusters", own, "--wait=forever")
    everywhere = ("--clusters", ",".join(aliases))
    for name, options in (("metrics", deployment.metrics), ("serve", deployment.serve)):
        if options is not None:
            is_in_pod = deployment.kind == "kubernetes" and "--listen" not in options
            yield name, (name, *everywhere, *(("--listen", _IN_PODS[name]) if is_in_pod else ()), *options)


def _variables(topology: Topology, datacenter: DataCenter, process: Process) -> tuple[str, ...]:
    """Return the names of the variables that a process looks values up in."""
    return tuple(sorted({*_referred(topology, datacenter, process, "env"), *datacenter.deployment.environment}))


def files_of(topology: Topology, datacenter: DataCenter, process: Process) -> frozenset[str]:
    """Return the paths of the files that a process reads: those of its references, and those of its options."""
    named = frozenset(value for option, value in pairwise(process.command) if option in _FILE_OPTIONS)
    return named | _referred(topology, datacenter, process, "file")


def _referred(topology: Topology, datacenter: DataCenter, process: Process, scheme: str) -> frozenset[str]:
    """Return the names that references of a scheme have, of all clusters of a process and of its tokens."""
    sides = {alias for flow in topology.flows_into(process.targets) for alias in (flow.source, flow.target)}
    declared = [asdict(datacenter.spark), *(asdict(topology.clusters[alias]) for alias in sides)]
    tokens = [value for option, value in pairwise(process.command) if option == _TOKEN]
    named = [value.partition(f"={scheme}:")[2] for value in tokens if f"={scheme}:" in value]
    return frozenset((*_looked_up(declared, scheme), *(name.partition("#")[0] for name in named)))


def _looked_up(value: Any, scheme: str) -> Iterator[str]:
    """Yield the names in JSON types of values with references of a scheme."""
    if isinstance(value, Mapping):
        if value.get("scheme") == scheme:
            yield str(value["name"])
        for inner in value.values():
            yield from _looked_up(inner, scheme)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _looked_up(inner, scheme)


def _limits(datacenter: DataCenter) -> Iterator[tuple[str, str]]:
    """Yield what a process gets beside its command, by the kind of the deployment."""
    deployment = datacenter.deployment
    if deployment.kind == "systemd":
        yield from _of_units(deployment.systemd)
    if deployment.kind == "standalone":
        yield "master", str(datacenter.spark.master)
        yield from _of_cluster(deployment.standalone)
    if deployment.kind == "yarn":
        yield from _of_cluster(deployment.yarn)
        yield from ((f"{CONF}{name}", value) for name, value in datacenter.spark.conf if name.startswith(_OF_YARN))


def _of_cluster(options: SparkDrivers | YarnApplications) -> Iterator[tuple[str, str]]:
    """Yield what drivers get, by the names of its fields in the file; what is not declared is no fact."""
    for name, value in asdict(options).items():
        if value is not None:
            yield name.replace("_", "-"), ",".join(value) if isinstance(value, tuple) else str(value)


def _of_units(units: SystemdUnits) -> Iterator[tuple[str, str]]:
    yield "scope", units.scope
    if units.scope == "system":
        yield "user", units.user
    if units.environment_file is not None:
        yield "environment-file", units.environment_file
    if units.memory is not None:
        yield "memory", str(units.memory)
    if units.cpus is not None:
        yield "cpus", f"{units.cpus:g}"


def deployment_plans(
    topology: Topology, targets: Collection[str], wanted: Collection[Process], found: DeploymentsFound, here: str
) -> tuple[DeploymentPlan, ...]:
    """Return the steps for every data centre that has a deployment, or one on record.

    Args:
        topology: what is declared.
        targets: aliases of the clusters that the plan is for: data centres of others are left out.
        wanted: what is to run.
        found: what was found.
        here: name of this machine.
    """
    chosen = {topology.clusters[alias].datacenter for alias in targets}
    everywhere = {cluster.datacenter for cluster in topology.clusters.values()}
    plans = []
    for name in dict.fromkeys((*topology.datacenters, *found)):
        # One that is no longer declared belongs to every plan of this topology.
        if name in everywhere and name not in chosen:
            continue
        deployment = data_centre_of(topology, name).deployment
        there = found.get(name, ())
        if deployment.kind == "none" and not there:
            continue
        wave = _wave(topology, name)
        if not deployment.is_on(here):
            notice = f"it is deployed on {deployment.host} alone, and this machine is {here}: it is left as it is"
            plans.append(DeploymentPlan(name, deployment.kind, wave, notices=(notice,)))
            continue
        mine = [process for process in wanted if process.datacenter == name]
        steps = tuple(_steps(mine, there))
        if steps and (left := [alias for alias in fed_clusters(topology, name) if alias not in targets]):
            # Whose locks are not held; another apply may be at work there.
            notice = f"its processes change where all its clusters are applied together, and {', '.join(left)} is not"
            plans.append(DeploymentPlan(name, deployment.kind, wave, notices=(notice,)))
            continue
        changed = {step.name for step in steps}
        kept = tuple(process.name for process in mine if process.name not in changed)
        notices = [*_notices(there), *([BY_OTHERS] if deployment.kind == "kubernetes" else [])]
        plans.append(DeploymentPlan(name, deployment.kind, wave, steps, kept, tuple(notices)))
    return tuple(plans)


def _wave(topology: Topology, datacenter: str) -> int:
    """Return in which wave a data centre is changed: that of its clusters; the last one where it has none."""
    waves = [topology.wave(alias) for alias, one in topology.clusters.items() if one.datacenter == datacenter]
    return min(waves, default=max(map(topology.wave, topology.clusters), default=1))


def _steps(wanted: Collection[Process], found: Collection[DeployedProcess]) -> Iterator[DeploymentStep]:
    """Yield the steps of one data centre: what stands elsewhere goes first, what is no longer wanted last."""
    names = {process.name for process in wanted}
    places = {(process.kind, process.folder) for process in wanted}
    moved = [one for one in found if places and (one.process.kind, one.process.folder) not in places]
    for one in moved:
        yield StopProcess(one.process, f"deployed by {one.process.kind} in {one.process.folder}")
    here = {one.process.name: one for one in found if one not in moved}
    for process in wanted:
        there = here.get(process.name)
        if there is None:
            yield DeployProcess(process)
        elif not there.is_running:
            yield DeployProcess(process, f"it does not run: {there.why}" if there.why else "it does not run")
        elif changes := (*fact_changes(there.process, process), *_surplus(there)):
            yield UpdateProcess(process, changes)
    for name, one in here.items():
        if name not in names:
            yield StopProcess(one.process)


def fact_changes(old: Process, new: Process) -> tuple[FactChange, ...]:
    """Return what differs between a process as deployed and as wanted."""
    before, after = old.facts, new.facts
    return tuple(
        FactChange(fact, before.get(fact, ""), after.get(fact, ""))
        for fact in dict.fromkeys((*after, *before))
        if before.get(fact, "") != after.get(fact, "")
    )


def _surplus(found: DeployedProcess) -> Iterator[FactChange]:
    """Yield that more than one of a process runs, as an apply that was killed may leave it."""
    if found.generations > 1:
        yield FactChange(GENERATIONS, str(found.generations), "1")


def _notices(found: Collection[DeployedProcess]) -> Iterator[str]:
    for one in found:
        if one.is_running and one.restarts:
            why = f"; the last time it {one.why}" if one.why else ""
            yield f"{one.process.name} was started again {one.restarts} times since it was deployed{why}"


def removal_plans(topology: Topology, targets: Collection[str], found: DeploymentsFound) -> tuple[DeploymentPlan, ...]:
    """Return the steps that stop everything in data centres that only have clusters among some targets, or none."""
    plans = []
    for name, there in found.items():
        fed = {alias for alias, one in topology.clusters.items() if one.datacenter == name} & set(topology.targets)
        wave = _wave(topology, name)
        if left := sorted(fed - set(targets)):
            notice = f"its processes go on, as they also feed {', '.join(left)}"
            plans.append(DeploymentPlan(name, there[0].process.kind, wave, notices=(notice,)))
        else:
            steps = tuple(StopProcess(one.process, "what it feeds is destroyed") for one in there)
            plans.append(DeploymentPlan(name, there[0].process.kind, wave, steps))
    return tuple(plans)


def deployment_drift(wanted: Collection[Process], found: DeploymentsFound) -> Iterator[DriftedProcess]:
    """Yield what differs between declared processes and what runs, whatever the topology files hold now."""
    for process in wanted:
        there = next((one for one in found.get(process.datacenter, ()) if one.process.name == process.name), None)
        if there is None:
            yield DriftedProcess(process.datacenter, process.name, "process", "runs", "not deployed")
            continue
        if not there.is_running:
            found_as = there.why or "does not run"
            yield DriftedProcess(process.datacenter, process.name, "process", "runs", found_as)
        for change in fact_changes(there.process, process):
            # Files that are not applied yet are a plan, and no drift.
            if change.fact != FILES:
                yield DriftedProcess(process.datacenter, process.name, change.fact, change.new, change.old)
