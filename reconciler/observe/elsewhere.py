"""Finds clusters where flows of a topology are in force although its files lead no flow there any more: these end.

`plan` and `apply` call it before they choose their targets. From each declared cluster that is no target of an enabled
flow it reads the record of the declaration in force.
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from reconciler.model.base.errors import AnabranchError
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.changes import OUT_OF_REACH
from reconciler.model.planning.steps import Notice
from reconciler.model.recorded.declaration import DeclarationHistory, declaration_into
from reconciler.observe.reach import unreachable_among
from reconciler.state.declarations import Declarations


class Elsewhere(NamedTuple):
    """What was found beside the targets of enabled flows.

    Attributes:
        targets: aliases of clusters where flows of the topology are in force, in the order of declaration.
        notices: clusters where that could not be read, and why.
    """

    targets: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()


def in_force_elsewhere(topology: Topology, targets: Collection[str]) -> Elsewhere:
    """Look at the declared clusters that are no targets.

    A cluster that does not answer, or does not let us read, is a notice where no flow reads from it: else it is a
    source, and the plan of its flows reports it. A cluster that is a source only, and refuses to show our topics, holds
    nothing that this user could have put in force.

    Args:
        topology: what is declared.
        targets: aliases of clusters that are looked at anyway.
    """
    aliases = [alias for alias in topology.aliases if alias not in targets]
    if not aliases:
        return Elsewhere()
    with ThreadPoolExecutor(len(aliases)) as pool:
        found = dict(zip(aliases, pool.map(lambda alias: _look(topology, alias), aliases), strict=True))
    sources = {flow.source for flow in topology.flows if flow.enabled}
    led_into = {flow.target for flow in topology.flows}
    notices = [
        Notice(f"cluster {alias}", _unknown(topology, error))
        for alias, error in found.items()
        if isinstance(error, AnabranchError) and (alias in led_into or alias not in sources)
    ]
    return Elsewhere(tuple(alias for alias in aliases if _lasts(topology, alias, found[alias])), tuple(notices))


def _look(topology: Topology, alias: str) -> DeclarationHistory | AnabranchError:
    cluster = topology.clusters[alias]
    if error := unreachable_among([cluster]).get(alias):
        return error
    declarations = Declarations(cluster, topology.name)
    try:
        return declarations.current()
    except AnabranchError as error:
        return error
    finally:
        declarations.close()


def _lasts(topology: Topology, alias: str, found: DeclarationHistory | AnabranchError) -> bool:
    """Return whether flows into a cluster are in force, as far as is known."""
    if isinstance(found, AnabranchError) or found.in_force is None or not found.in_force.is_declared:
        return False
    if found.declaration is not None:
        return bool(found.declaration.flows)
    # A digest alone shows only whether the declaration differs from one without flows.
    return found.in_force.digest != declaration_into(topology, alias).digest


def _unknown(topology: Topology, error: AnabranchError) -> str:
    problem = error.problems[0]
    return (
        f"whether flows of {topology.name} into it are in force is not known, as {problem.message} [{problem.code}]; "
        f"if they are, they go on there [{OUT_OF_REACH}]"
    )
