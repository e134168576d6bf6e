"""Deletion of the topics that hold a topology's state on one target, once nothing of the topology is left there.

Called by `destroy --state` after the lock of `apply`, which lies in one of these topics, was released. Killed at any
moment, the next call deletes the rest.
"""

from __future__ import annotations

from reconciler.model.base.errors import Problem, Refused
from reconciler.model.declared.cluster import Cluster
from reconciler.model.names.own_names import state_names
from reconciler.provision.removal import Remover
from reconciler.state.failovers import Failovers
from reconciler.state.journals import home
from reconciler.state.journals.journal import Journal
from reconciler.state.lock import is_claim
from reconciler.state.ownership import Ownership

_PATIENCE = 10.0


class StateRemover(Remover):
    """Deletes the state topics of one topology on one cluster.

    Args:
        cluster: the target.
        topology: name of the topology.
    """

    def __init__(self, cluster: Cluster, topology: str) -> None:
        super().__init__(cluster, topology, None)
        self._topology = topology

    def remove_state(self) -> list[str]:
        """Delete the state topics; return the names of those that were deleted, none where there were none.

        Raises:
            Refused: AB455, the topics are shared with other topologies, or hold records of topics or ACLs, an `apply`
                works there, a flow is failed over, or a task or process of the topology lives.
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, AB313, a request is refused.
        """
        names = state_names(self._topology)
        ids, problems = self._ids(names)
        if not problems:
            self._check(ids)
            problems = self._delete(ids)
        if problems:
            raise Refused(list(problems.values()))
        home.forget(self._cluster, self._topology)
        return [name for name in names if name in ids]

    def _check(self, there: dict[str, str]) -> None:
        journals = home.decide(self._cluster, self._topology, _PATIENCE)
        if not journals.is_own:
            self._refuse("its state is in topics that all topologies share", "run apply, which moves it to its own")
        if journals.owned.name in there:
            records = Ownership(self._cluster, self._topology).read_all()
            if left := len(records.topics) + len(records.acls):
                self._refuse(f"{left} topics and ACLs are still on record", "run destroy until nothing is left")
            if any(is_claim(key) for key in Journal(self._cluster, journals.owned, _PATIENCE).read()):
                self._refuse("an apply or a destroy works there", "wait until it has ended")
            failovers = Failovers(self._cluster, self._topology)
            try:
                if failed_over := failovers.current():
                    self._refuse(f"flow {min(failed_over)} is failed over", "run failback first")
            finally:
                failovers.close()
        if journals.status.name in there and (live := self._copiers.living()):
            self._refuse(f"run {live[0].run} of flow {live[0].flow} lives", "end that replicate")

    def _refuse(self, found: str, remedy: str) -> None:
        where = f"{self._cluster.where}, topology {self._topology}"
        raise Refused(Problem("AB455", where, f"its state is kept: {found}", remedy))
