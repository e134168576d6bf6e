"""Reports which processes still copy a flow that is ending. No clock of another machine counts.

Only members of the flow's group write to copies, and a task stops writing before the coordinator may drop it
(`replicator.lease.lease`): without members, there are no writes. Processes that are about to join report themselves.
"""

from __future__ import annotations

from functools import partial

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import lease_group
from reconciler.state.confluent.faults import refused, unreachable
from reconciler.state.running import LiveTasks
from reconciler.wire import (
    COORDINATOR_NOT_READY,
    BrokerError,
    ConnectionLost,
    ErrorCode,
    GroupWire,
    Loop,
    Membership,
    error_name,
    when_ready,
)

_SECONDS = 10.0


class FlowEnd:
    """Reads which processes copy one flow.

    Args:
        cluster: the flow's target.
        topology: name of the topology.
        flow: name of the flow.
    """

    def __init__(self, cluster: Cluster, topology: str, flow: str) -> None:
        self._cluster = cluster
        self._group = lease_group(topology, flow)
        self._words = LiveTasks(cluster, topology, flow)
        self._loop = Loop()
        self._wire = GroupWire(self._loop, cluster, "anabranch-failover", _SECONDS)

    def holders(self) -> list[str]:
        """Return the runs that copy the flow or are about to, or else the members of its group, in words.

        Raises:
            Unreachable: AB310, the target does not answer.
            EnvironmentFault: AB311 or AB313, reading is refused; AB630, the coordinator returns another error.
        """
        # A process reports itself before it joins the group, so one of both reads finds it.
        runs = sorted({word.run for word in self._words.current()})
        return runs or [f"{one} in group {self._group}" for one in self._members()]

    def _members(self) -> list[str]:
        found: list[str] = []

        async def ask_once() -> None:
            node = await self._wire.group_coordinator(self._group)
            listed = await self._wire.members(Membership(node, self._group))
            found.extend(sorted(one.client_id for one in listed))

        try:
            self._loop.run(partial(when_ready, self._loop, ask_once, COORDINATOR_NOT_READY, _SECONDS))
        except ConnectionLost as error:
            message = f"the members of group {self._group} cannot be listed: {error}"
            raise unreachable(self._cluster, message) from None
        except BrokerError as error:
            if error.code == ErrorCode.GROUP_AUTHORIZATION_FAILED:
                raise EnvironmentFault(refused(self._cluster, "DESCRIBE", f"group {self._group}")) from None
            where = f"{self._cluster.where}, group {self._group}"
            message = f"the cluster answers {error_name(error.code)}"
            raise EnvironmentFault(Problem("AB630", where, message, "mend what it names, then try again")) from None
        return found

    def close(self) -> None:
        """Close the connections."""
        self._words.close()
        self._wire.close()
        self._loop.close()
