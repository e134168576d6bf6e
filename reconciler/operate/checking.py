"""Checks what replication needs: on this machine, on the clusters, and behind the references of a declaration."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from reconciler.model.base.errors import AnabranchError, EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.health import Check, Machine

if TYPE_CHECKING:
    from reconciler.observe.connection import Connection


def check_references(topology: Topology) -> None:
    """Look every reference up and forget it again, but for those of clusters that may not be connected to from here.

    Raises:
        EnvironmentFault: AB309, with every such cluster; AB304, with every reference that leads to nothing, or to what
            its field does not take.
    """
    problems: list[Problem] = []
    for cluster in topology.clusters.values():
        try:
            cluster.check_hosts()
        except EnvironmentFault as error:
            problems += error.problems
            continue
        problems += cluster.unresolved()
    for datacenter in topology.datacenters.values():
        try:
            _ = datacenter.spark.address
        except EnvironmentFault as error:
            problems += error.problems
    if problems:
        raise EnvironmentFault(list(dict.fromkeys(problems)))


def machine_checks() -> Iterator[Check]:
    """Yield what this machine has of what replication needs: Java, and the interpreter of tasks."""
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


def cluster_checks(topology: Topology, targets: tuple[str, ...]) -> Iterator[Check]:
    """Yield what the clusters of the flows into some targets have of what replication needs; changes nothing.

    Args:
        topology: what is declared.
        targets: aliases of the targets.
    """
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

    name = f"{transactional_prefix(*probe)}doctor"
    has_transactions = connection.why_no_transactions([name]).get(name) != "unknown"
    try:
        found = Probes(cluster, topology).read(str(connection.metadata.cluster_id))
    except AnabranchError:
        # What may not be read is among the permissions.
        found = None
    return health.capabilities(cluster, found, has_transactions, takes_identical)
