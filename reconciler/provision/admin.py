"""The admin requests that change a cluster, each for many topics at once, and what their failures are called.

Called by `direct` only. Nothing is raised for a single topic: every method returns the problems by topic name, so that
one bad topic stops no other.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    TopicDescription,
    TopicMetadata,
)

from reconciler.model.base.errors import Problem
from reconciler.model.base.progress import Progress
from reconciler.model.declared.cluster import Cluster
from reconciler.model.planning.desired import DesiredTopic
from reconciler.model.planning.steps import ConfigChange
from reconciler.provision.changes import failed
from reconciler.state.confluent import calls, clients, replicas
from reconciler.state.confluent.faults import in_words

ANSWER_SECONDS = 30.0
VISIBLE_SECONDS = 30.0
CHANGES_AT_ONCE = 4000
"""Topics, partitions and settings in one request; a controller commits at most 10,000 at once (`QuorumController`)."""

_PAUSE_SECONDS = 0.1

Problems = dict[str, Problem]


class Admin:
    """Changes one cluster.

    Args:
        cluster: which one.

    Attributes:
        validates_only: whether every change is only asked about.

    Raises:
        EnvironmentFault: AB304 a secret cannot be resolved, AB306 `security` cannot be used on this machine.
    """

    validates_only = False

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._client = clients.make(AdminClient, cluster)
        self._patience = cluster.clients.admin.patience(ANSWER_SECONDS)

    @property
    def _options(self) -> dict[str, Any]:
        return {"request_timeout": self._patience, "validate_only": self.validates_only}

    def create_topics(self, topics: Mapping[str, DesiredTopic]) -> Problems:
        """Make topics; return what went wrong by topic name."""
        problems: Problems = {}
        for names in _batches({name: 1 + t.partitions + len(t.settings) for name, t in topics.items()}):
            new = [_new_topic(topics[name]) for name in names]
            problems |= self._problems(self._client.create_topics(new, **self._options), "CREATE")
        return problems

    def await_topics(self, partitions: Mapping[str, int]) -> tuple[dict[str, str], Problems]:
        """Wait until topics are visible and every partition has a leader.

        Args:
            partitions: how many each topic must have, by name.

        Returns:
            The topic ids of those that are seen, and the problem of each one that is not.
        """
        progress = Progress(VISIBLE_SECONDS)
        # Partitions without a leader, by topic.
        missing = dict(partitions)
        while missing:
            try:
                seen = clients.listed(self._client, self._patience).topics
            except KafkaException as error:
                if error.args[0].code() not in calls.SILENT or not progress.is_made(sum(missing.values())):
                    return {}, dict.fromkeys(partitions, self._problem(error.args[0], "DESCRIBE", ""))
                time.sleep(_PAUSE_SECONDS)
                continue
            left = {name: partitions[name] - _led(seen[name]) if name in seen else partitions[name] for name in missing}
            missing = {name: count for name, count in left.items() if count > 0}
            if not progress.is_made(sum(missing.values())):
                break
            if missing:
                time.sleep(_PAUSE_SECONDS)
        problems = {name: self._leaderless(name) for name in missing}
        ids: dict[str, str] = {}
        visible = [name for name in partitions if name not in missing]
        if visible:
            described = self._describe(visible)
            problems |= self._problems(described, "DESCRIBE")
            ids = {name: str(future.result().topic_id) for name, future in described.items() if name not in problems}
        return ids, problems

    def lacking(self, needed: Mapping[str, Collection[str]]) -> Problems:
        """Return, by topic name, which of the needed operations we are not allowed on topics that exist."""
        if not needed:
            return {}
        described = self._describe(needed, include_authorized_operations=True)
        problems = self._problems(described, "DESCRIBE")
        for name, operations in needed.items():
            allowed = None if name in problems else described[name].result().authorized_operations
            names = {operation.name for operation in allowed or ()}
            if allowed is not None and (refused := [one for one in operations if one not in names]):
                problems[name] = self._lacks(name, " and ".join(refused))
        return problems

    def _describe(self, names: Collection[str], **options: bool) -> dict[str, Future[TopicDescription]]:
        """Describe topics that were made; any broker may answer, and each learns of them at a time of its own."""
        progress = Progress(VISIBLE_SECONDS)
        found: dict[str, Future[TopicDescription]] = {}
        while missing := [name for name in names if name not in found]:
            asked = TopicCollection(missing)
            described = self._client.describe_topics(asked, request_timeout=self._patience, **options)
            known = sum(not _is_unknown(future) for future in described.values())
            is_late = not progress.is_made(len(missing) - known)
            found |= {name: future for name, future in described.items() if is_late or not _is_unknown(future)}
            if len(found) < len(names):
                time.sleep(_PAUSE_SECONDS)
        return found

    def add_partitions(self, totals: Mapping[str, int]) -> Problems:
        """Let topics grow to the given numbers of partitions; return what went wrong by topic name."""
        problems: Problems = {}
        for names in _batches(totals):
            new = [NewPartitions(name, totals[name]) for name in names]
            problems |= self._problems(self._client.create_partitions(new, **self._options), "ALTER")
        return problems

    def alter_configs(self, changes: Mapping[str, Sequence[ConfigChange]]) -> Problems:
        """Change the named settings of topics and no others; return what went wrong by topic name."""
        problems: Problems = {}
        for names in _batches({name: len(changed) for name, changed in changes.items()}):
            resources = [_resource(name, changes[name]) for name in names]
            futures = self._client.incremental_alter_configs(resources, **self._options)
            problems |= self._problems({place.name: future for place, future in futures.items()}, "ALTER_CONFIGS")
        return problems

    def _problems(self, futures: Mapping[str, Future[object]], operation: str) -> Problems:
        problems: Problems = {}
        for name, future in futures.items():
            try:
                # No limit here: the request has one of its own.
                future.result()
            except KafkaException as error:
                problems[name] = self._problem(error.args[0], operation, name)
        return problems

    def _problem(self, error: KafkaError, operation: str, topic: str) -> Problem:
        resource = f"topic {topic}"
        if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            where = f"{self._cluster.where}, {resource}"
            return Problem("AB315", where, "was made by others since the plan", "plan again")
        if replicas.is_too_few(error):
            return replicas.not_now(self._cluster, resource, in_words(error))
        return failed(self._cluster, error, operation, resource, resource)

    def _lacks(self, topic: str, operations: str) -> Problem:
        return Problem(
            "AB360",
            f"{self._cluster.where}, topic {topic}",
            f"was made, and {self._cluster.user} is not allowed {operations} on it: nothing could be copied",
            f"grant {operations} on topic {topic}; the next plan checks it",
        )

    def _leaderless(self, topic: str) -> Problem:
        return Problem(
            "AB316",
            f"{self._cluster.where}, topic {topic}",
            f"was made, but not every partition has a leader, and for {VISIBLE_SECONDS:g} s none has got one",
            "check the cluster's brokers, then apply again",
        )


def _is_unknown(future: Future[TopicDescription]) -> bool:
    error = future.exception()
    return isinstance(error, KafkaException) and error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def _batches(weights: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """Yield names in batches of at most `CHANGES_AT_ONCE` by weight; what weighs more travels alone."""
    batch: list[str] = []
    load = 0
    for name, weight in weights.items():
        if batch and load + weight > CHANGES_AT_ONCE:
            yield tuple(batch)
            batch, load = [], 0
        batch.append(name)
        load += weight
    if batch:
        yield tuple(batch)


def _led(topic: TopicMetadata) -> int:
    return sum(partition.leader >= 0 for partition in topic.partitions.values())


def _new_topic(topic: DesiredTopic) -> NewTopic:
    return NewTopic(topic.name, topic.partitions, topic.replication_factor, config=dict(topic.configs))


def _resource(topic: str, changes: Sequence[ConfigChange]) -> ConfigResource:
    operations = [_operation(change) for change in changes]
    return ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=operations)


def _operation(change: ConfigChange) -> ConfigEntry:
    if change.new is None:
        return ConfigEntry(change.key, None, incremental_operation=AlterConfigOpType.DELETE)
    return ConfigEntry(change.key, change.new, incremental_operation=AlterConfigOpType.SET)
