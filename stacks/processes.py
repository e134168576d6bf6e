"""The processes of a data centre as a stack holds them, so that a preview shows what a deployment changes.

The stack records them alone: `apply` starts and ends them itself, once the clusters of the data centre are as declared.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Mapping
from typing import Any

from reconciler.model.declared.topology import Topology
from reconciler.model.planning.deployments import Process
from reconciler.operate.deployments.observed import Deployments

ProcessInputs = Mapping[str, Any]
"""What a stack records of a process."""


def declared_processes(topology: Topology, datacenter: str) -> dict[str, ProcessInputs]:
    """Return what a data centre is to run, by name of the process."""
    return {one.name: inputs_of(one) for one in Deployments(topology).wanted() if one.datacenter == datacenter}


def found_processes(topology: Topology, datacenter: str) -> dict[str, ProcessInputs] | None:
    """Return what runs in a data centre, by name of the process; None where another machine deploys it.

    Raises:
        EnvironmentFault: AB761, a record cannot be read; AB765 or AB768, what keeps the processes does not answer.
    """
    declared = topology.datacenters.get(datacenter)
    if declared is not None and not declared.deployment.is_on(socket.gethostname()):
        return None
    there = Deployments(topology).found().get(datacenter, ())
    return {
        one.process.name: inputs_of(one.process)
        for one in there
        if one.is_running and one.process.topology == topology.name
    }


def inputs_of(process: Process) -> ProcessInputs:
    """Return what a stack records of a process: whatever a plan compares.

    The interpreter that a process has because nothing else is declared is left out: Pulumi may run its program with
    another path of the same one.
    """
    facts = process.facts
    if process.python == sys.executable:
        del facts["python"]
    return facts
