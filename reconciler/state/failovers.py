"""Which flows of a topology are failed over, kept in the topology's journal of ownership at their target.

One record for each flow, one for each of its copies with the offsets at which that ended (its cut), and one for each
group whose positions were committed, by failover or by failback.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from reconciler.model.base.errors import Problem, Refused
from reconciler.model.base.shape import fits
from reconciler.model.declared.cluster import Cluster
from reconciler.model.recorded.failover import Cut, FailedOver
from reconciler.model.recorded.placed import Placed
from reconciler.state.journals import following, records
from reconciler.state.journals.encoding import Value
from reconciler.state.journals.home import JournalPlace
from reconciler.state.journals.journal import Journal

_FLOW, _CUT, _MOVED, _RETURNED = "failover", "failover-cut", "failover-moved", "failover-returned"
_PAUSE = 0.05


class Failovers:
    """The flows of one topology into one cluster that are failed over.

    Args:
        cluster: the target.
        topology: name of the topology.
        timeout: seconds to wait for the cluster in each call.
    """

    def __init__(self, cluster: Cluster, topology: str, timeout: float = 10.0) -> None:
        self._journal = Journal(cluster, JournalPlace(topology, "owned"), timeout)
        self._values = following.FollowedValues(cluster, self._journal, timeout)
        self._topology = topology

    def current(self) -> dict[str, FailedOver]:
        """Return them by flow; only the first call waits for the cluster, later ones take in what has arrived.

        It waits until it has read all records that this object has written.

        Raises:
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        return failed_over(self._topology, self._values.current().values())

    def put(self, one: FailedOver) -> None:
        """Store the state of a flow and wait until it is stored. Its cuts are written first, so readers find them.

        Raises:
            EnvironmentFault: AB311, the cluster did not take it.
            Unreachable: AB310, the cluster does not answer.
        """
        self._journal.ensure()
        cuts = {
            f"{_CUT}/{self._topology}/{one.flow}/{cut.remote}": self._of(_CUT, one.flow)
            | cut.to_json()
            | {"since": one.since}
            for cut in one.cuts.values()
        }
        if cuts:
            self._journal.write_all(cuts)
        state = {"phase": one.phase, "since": one.since, "by": one.by}
        self._values.written = self._journal.write(
            f"{_FLOW}/{self._topology}/{one.flow}", self._of(_FLOW, one.flow) | state
        )

    def put_moved(self, one: FailedOver, groups: Mapping[str, Placed]) -> None:
        """Store which positions of groups a failover has committed, and wait until it is stored.

        Errors are those of `put`. The record of a group replaces the one before.
        """
        self._put_placed(_MOVED, one, groups)

    def put_returned(self, one: FailedOver, groups: Mapping[str, Placed]) -> None:
        """Store which positions of groups a failback has committed, as `put_moved` does for a failover."""
        self._put_placed(_RETURNED, one, groups)

    def _put_placed(self, kind: str, one: FailedOver, groups: Mapping[str, Placed]) -> None:
        if groups:
            of = self._of(kind, one.flow) | {"since": one.since}
            written = {
                self._key_of_group(kind, one, group): of | {"group": group} | placed.to_json()
                for group, placed in sorted(groups.items())
            }
            self._values.written = self._journal.write_all(written)

    def forget_returned(self, one: FailedOver) -> None:
        """Remove the groups of an abandoned failback and wait until that is stored; errors are those of `put`."""
        if one.returned:
            keys = [self._key_of_group(_RETURNED, one, group) for group in sorted(one.returned)]
            self._values.written = self._journal.write_all(dict.fromkeys(keys))

    def _key_of_group(self, kind: str, one: FailedOver, group: str) -> str:
        return f"{kind}/{self._topology}/{one.flow}/{group}"

    def forget(self, one: FailedOver) -> None:
        """Remove the state of a flow and wait until that is stored; errors are those of `put`."""
        # The flow's record first: without it cuts have no meaning.
        self._values.written = self._journal.write(f"{_FLOW}/{self._topology}/{one.flow}", None)
        keys = [f"{_CUT}/{self._topology}/{one.flow}/{cut.remote}" for cut in one.cuts.values()]
        keys += [self._key_of_group(_MOVED, one, group) for group in sorted(one.moved)]
        keys += [self._key_of_group(_RETURNED, one, group) for group in sorted(one.returned)]
        if keys:
            self._values.written = self._journal.write_all(dict.fromkeys(keys))

    def check_same(self, flow: str, seen: FailedOver | None) -> None:
        """Check that the state of a flow has not changed since it was read; the caller holds the lock.

        Raises:
            Refused: AB407, another process has changed it.
            Unreachable: AB310, the cluster does not answer.
            EnvironmentFault: AB311, reading is refused.
        """
        # A follower may lag behind the writes of other processes: the journal is read to its end.
        if failed_over(self._topology, self._journal.read().values()).get(flow) != seen:
            message = "another process has changed its state while the plan was read"
            raise Refused(Problem("AB407", f"flow {flow}", message, "run it again and read the new plan"))

    def close(self) -> None:
        """Close the connection."""
        self._values.close()

    def _of(self, kind: str, flow: str) -> Value:
        return {"kind": kind, "topology": self._topology, "flow": flow}


def failed_over(topology: str, values: Iterable[Mapping[str, Any]]) -> dict[str, FailedOver]:
    """Return the flows of a topology that are failed over, by name, from the values of a journal of ownership."""
    kinds: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in (_FLOW, _CUT, _MOVED, _RETURNED)}
    for one in values:
        if one.get("topology") == topology and isinstance(kind := one.get("kind"), str):
            kinds.get(kind, []).append(one)
    flows = [known for one in kinds[_FLOW] if (known := fits(records.failed_over, one)) is not None]
    found = {known["flow"]: FailedOver(**known) for known in flows}

    def is_current(flow: str, since: float) -> bool:
        # A record of an earlier failover is left where a process was killed while it removed that.
        return flow in found and since == found[flow].since

    cuts: dict[str, dict[str, Cut]] = {name: {} for name in found}
    for one in kinds[_CUT]:
        if (cut := fits(records.cut, one)) is not None and is_current(*cut[:2]):
            cuts[cut[0]][cut[2].topic] = cut[2]
    placed: dict[str, dict[str, dict[str, Placed]]] = {name: {_MOVED: {}, _RETURNED: {}} for name in found}
    for kind in (_MOVED, _RETURNED):
        for one in kinds[kind]:
            if (of := fits(records.placed, one)) is not None and is_current(*of[:2]):
                placed[of[0]][kind][of[2]] = of[3]
    return {
        name: replace(
            state,
            cuts=cuts[name] if state.phase != "ending" else {},
            moved=placed[name][_MOVED],
            returned=placed[name][_RETURNED],
        )
        for name, state in found.items()
    }
