"""`anabranch doctor`: is everything there that replication needs, on this machine and on the clusters?"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from reconciler.cli.common import (
    FORMAT,
    TextOrJson,
    as_written,
    load_topology,
    print_json,
    stderr_console,
    stdout_console,
)
from reconciler.cli.targeting import Clusters
from reconciler.model.base.errors import AnabranchError, EnvironmentFault
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.health import Check, Machine
from reconciler.operate.targets import chosen_targets

if TYPE_CHECKING:
    from reconciler.observe.connection import Connection


def doctor(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[FILE...]", help="Topology files; without any, this machine alone is looked at."),
    ] = None,
    clusters: Clusters = None,
    output: Annotated[
        TextOrJson, typer.Option(*FORMAT, callback=as_written, help="How the result is written.")
    ] = "text",
) -> None:
    """Check this machine and the clusters, and show what stands against replicating. Changes nothing."""
    from reconciler.report.health import checks_json, checks_text

    if clusters and not files:
        message = "it goes with topology files; without any, this machine alone is looked at"
        raise typer.BadParameter(message, param_hint="--clusters")
    checks = list(_of_machine())
    if files:
        topology = load_topology(files)
        targets = chosen_targets(topology, clusters)
        with stderr_console().status("looking at the clusters"):
            checks += _of_clusters(topology, targets)
    if output == "json":
        print_json(checks_json(checks))
    else:
        stdout_console().print(checks_text(checks))
    if any(check.level == "failure" for check in checks):
        raise typer.Exit(1)


def _of_machine() -> Iterator[Check]:
    from reconciler.embedded.jars import java_executable, java_version
    from reconciler.plan.findings import health

    try:
        java = java_executable()
        yield Check("java", "ok", f"Java {java_version(str(java))}, {java}")
    except EnvironmentFault as error:
        yield Check("java", "failure", error.problems[0].message, error.problems[0].remedy)
    yield health.interpreter(_machine())


def _machine() -> Machine:
    major, minor, micro = sys.version_info[:3]
    return Machine((major, minor, micro), sys.executable, os.environ.get("PYSPARK_PYTHON"), os.cpu_count() or 1)


def _of_clusters(topology: Topology, targets: tuple[str, ...]) -> Iterator[Check]:
    from reconciler.plan.findings import health

    flows = topology.flows_into(targets)
    for spark in dict.fromkeys(topology.spark(flow.target) for flow in flows):
        there = [flow for flow in flows if topology.spark(flow.target) == spark]
        yield health.slots(there, _machine().cores, spark.address)
    sides = {alias for flow in flows for alias in (flow.source, flow.target)}
    aliases = [alias for alias in topology.aliases if alias in sides]
    with ThreadPoolExecutor(max(1, len(aliases))) as pool:
        for checks in pool.map(lambda alias: _of_cluster(topology, targets, alias), aliases):
            yield from checks


def _of_cluster(topology: Topology, targets: tuple[str, ...], alias: str) -> list[Check]:
    from reconciler.observe.connection import Connection
    from reconciler.observe.health import brokers_of, rights
    from reconciler.plan.acls.requirements import needed_acls
    from reconciler.plan.findings import health
    from reconciler.replicator.driver.clock_skew import clock_of
    from reconciler.state.journals import home

    cluster, flows = topology.clusters[alias], topology.flows_into(targets)
    checks: list[Check] = []
    try:
        connection = Connection(cluster)
        checks.append(Check(f"cluster {alias}: bootstrap", "ok", f"answers at {', '.join(cluster.addresses)}"))
        brokers = brokers_of(connection)
        checks.append(health.brokers(cluster, brokers))
        checks.append(health.encryption(cluster, brokers))
        checks.append(health.clock(cluster, clock_of(cluster)))
        journals = home.seen(cluster, topology.name, connection.metadata.topics)
        shared = () if journals.is_own else (alias,)
        acls = [acl for acl in needed_acls(topology, flows, shared) if acl.alias == alias]
        checks += health.permissions(cluster, acls, rights(connection, acls))
        if exact := [flow for flow in flows if flow.target == alias and not flow.repeats]:
            takes_identical = any(flow.offsets != "translated" for flow in exact)
            checks.append(_capabilities(cluster, topology.name, connection, journals.probe, takes_identical))
    except AnabranchError as error:
        checks += [Check(f"cluster {alias}", "failure", one.message, one.remedy) for one in error.problems]
    return checks


def _capabilities(
    cluster: Cluster, topology: str, connection: Connection, probe: tuple[str, str], takes_identical: bool
) -> Check:
    from reconciler.model.names.own_names import transactional_prefix
    from reconciler.plan.findings import health
    from reconciler.state.probes import Probes

    has_transactions = connection.why_no_transactions(f"{transactional_prefix(*probe)}doctor") != "unknown"
    try:
        found = Probes(cluster, topology).read(str(connection.metadata.cluster_id))
    except AnabranchError:
        # What may not be read is among the permissions.
        found = None
    return health.capabilities(cluster, found, has_transactions, takes_identical)
