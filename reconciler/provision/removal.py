"""Taking remote topics of ours away: only the very topic that is on record, and the record last of all.

Called by both provisioners and by `destroy`. Killed at any moment, the next goes on: a record without its topic is
forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import TopicDescription

from reconciler.model.base.errors import AnabranchError, Problem
from reconciler.model.base.progress import Progress
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.removals import DeleteTopic, ForgetTopic, Removal
from reconciler.model.planning.steps import Plan
from reconciler.model.recorded.declaration import DESTROYED
from reconciler.provision.admin import VISIBLE_SECONDS, Admin, Problems
from reconciler.provision.changes import portions
from reconciler.provision.work import Work
from reconciler.state.declarations import Declarations
from reconciler.state.ownership import Ownership
from reconciler.state.running import Copiers

AT_ONCE = 100
"""Topics in one request: between the look at their ids and their end is as little time as can be."""

_PAUSE_SECONDS = 0.1


def end_what_is_in_force(topology: Topology, plan: Plan, may_change: Callable[[str], None]) -> list[str]:
    """Record at each target that nothing is in force any more, before anything is deleted; return these targets.

    From then on no `replicate` begins with the old declaration, and makes anew what is just being deleted.

    Args:
        topology: the declaration.
        plan: of `destroy`.
        may_change: asked before each change, by alias; raises an error where nothing may be changed.

    Raises:
        Unreachable: AB310, a target does not answer.
        EnvironmentFault: AB311, a target does not take it.
    """
    ended = []
    for alias, digest in plan.to_put_in_force:
        assert digest == DESTROYED, "destroy puts nothing else in force"
        may_change(alias)
        Declarations(topology.clusters[alias], topology.name).put_in_force(digest)
        ended.append(alias)
    return ended


class Remover(Admin):
    """Deletes topics of one cluster, and forgets them.

    Args:
        cluster: which one.
        topology: name of the topology whose topics they are.
        declared: the digest that the plan puts in force there; None where no run of any declaration may be left.
    """

    def __init__(self, cluster: Cluster, topology: str, declared: str | None) -> None:
        super().__init__(cluster)
        self._ownership = Ownership(cluster, topology)
        self._copiers = Copiers(cluster, topology)
        self._declared = declared

    def remove(self, steps: Sequence[Removal]) -> Problems:
        """Carry out some steps; return by topic name what went wrong. At most `AT_ONCE` of them are for one call."""
        deletions = [step for step in steps if isinstance(step, DeleteTopic)]
        try:
            problems = self._copiers.still_copied(deletions, self._declared)
        except AnabranchError as error:
            problems = dict.fromkeys((step.name for step in deletions), error.problems[0])
        ids = {step.name: step.topic_id for step in deletions if step.name not in problems}
        problems |= self._delete(ids)
        problems |= self._still_there([step.name for step in steps if isinstance(step, ForgetTopic)])
        gone = [step.name for step in steps if step.name not in problems]
        try:
            self._ownership.forget(gone)
        except AnabranchError as error:
            problems |= dict.fromkeys(gone, error.problems[0])
        return problems

    def close(self) -> None:
        """Close the reader of the flows that run there."""
        self._copiers.close()

    def _delete(self, ids: Mapping[str, str]) -> Problems:
        """Delete topics that have these ids; one that is gone already is as good."""
        there, problems = self._ids(ids)
        for name, topic_id in there.items():
            if topic_id != ids[name]:
                problems[name] = self._another(name, ids[name], topic_id)
        doomed = [name for name in there if name not in problems]
        if not doomed:
            return problems
        futures = self._client.delete_topics(doomed, operation_timeout=self._patience, request_timeout=self._patience)
        asked = {name: future for name, future in futures.items() if not _is_unknown(future)}
        refused = self._problems(asked, "DELETE")
        return problems | refused | self._await_end({name: ids[name] for name in doomed if name not in refused})

    def _await_end(self, ids: Mapping[str, str]) -> Problems:
        """Wait until no topic with these ids is listed any more."""
        progress = Progress(VISIBLE_SECONDS)
        left = dict(ids)
        while left:
            there, problems = self._ids(left)
            # A client made a topic of another id meanwhile: ours is gone.
            left = {name: topic_id for name, topic_id in left.items() if there.get(name) == topic_id}
            if problems or not left:
                return problems
            if not progress.is_made(len(left)):
                break
            time.sleep(_PAUSE_SECONDS)
        return {name: self._unended(name) for name in left}

    def _still_there(self, names: Collection[str]) -> Problems:
        """Return a problem for each topic that exists after all: what is on record of it stays."""
        there, problems = self._ids(names)
        return problems | {name: self._another(name, "none", topic_id) for name, topic_id in there.items()}

    def _ids(self, names: Collection[str]) -> tuple[dict[str, str], Problems]:
        """Return the ids of the topics that exist, and what stands against looking."""
        if not names:
            return {}, {}
        asked = TopicCollection(list(names))
        described = self._client.describe_topics(asked, request_timeout=self._patience)
        seen = {name: future for name, future in described.items() if not _is_unknown(future)}
        problems = self._problems(seen, "DESCRIBE")
        return {name: str(f.result().topic_id) for name, f in seen.items() if name not in problems}, problems

    def _another(self, topic: str, expected: str, found: str) -> Problem:
        return Problem(
            "AB315",
            f"{self._cluster.where}, topic {topic}",
            f"was made by others since the plan (topic id {expected} then, {found} now), and stays",
            "plan again",
        )

    def _unended(self, topic: str) -> Problem:
        where = f"{self._cluster.where}, topic {topic}"
        return Problem(
            "AB314", where, f"was deleted, and is still listed; for {VISIBLE_SECONDS:g} s none has gone", "run it again"
        )


def _is_unknown(future: Future[TopicDescription] | Future[None]) -> bool:
    error = future.exception()
    return isinstance(error, KafkaException) and error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def remove_topics(work: Work, steps: Sequence[Removal], topology: str) -> None:
    """Take topics away, last of all: nothing is deleted on a cluster where something else has failed.

    Args:
        work: on the cluster.
        steps: what it does last.
        topology: name of the topology whose topics they are.
    """
    if steps and not work.outcome.is_complete:
        work.skip(steps, "something else was not done, and nothing is deleted before")
        return
    with closing(Remover(work.cluster, topology, work.declared)) as remover:
        for portion in portions(steps, AT_ONCE):
            if not work.may_go_on(portion):
                continue
            problems = remover.remove(portion)
            for step in portion:
                if step.name in problems:
                    work.fail([step], problems[step.name])
            work.done([step for step in portion if step.name not in problems])
