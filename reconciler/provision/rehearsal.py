"""Validates the steps of a plan at its targets, whose policies, quotas and limits only they can check.

Every request is the one that the direct provisioner would send, as validate-only: nothing is changed. Called by the
commands that show a plan; the reconcile loop gets the same answers when it makes topics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from confluent_kafka import KafkaError

from reconciler.model.base.errors import Problem, Refused
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.steps import AddPartitions, AlterConfig, ClusterPlan, CreateTopic, Notice, Plan
from reconciler.provision.admin import Admin, Problems
from reconciler.state.confluent import calls, replicas
from reconciler.state.confluent.faults import in_words, is_refusal

_SHOWN = 3
_REFUSED = "AB451"


class Overtaken(Refused):
    """A target would refuse steps because topics were made, or grew, since it was observed: by a run, or by others."""


class _Rehearsing(Admin):
    """Has everything validated only.

    Attributes:
        unasked: why something could not be asked, or is only slowed down; nothing stands against the plan.
        is_overtaken: whether a topic is there, or has partitions, that it had not when it was observed.
    """

    validates_only = True

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.unasked: dict[str, None] = {}
        self.is_overtaken = False

    def _problem(self, error: KafkaError, operation: str, topic: str) -> Problem:
        where = f"{self._cluster.where}, topic {topic}"
        if replicas.is_too_few(error):
            return replicas.not_now(self._cluster, f"topic {topic}", in_words(error))
        self.is_overtaken |= error.code() in (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.INVALID_PARTITIONS)
        remedy = "change what the flow declares, or what the cluster allows; or exclude the topic from the flow"
        if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            remedy = "plan again; if it is refused again, it is hidden from this user: grant DESCRIBE on it"
        return Problem(_REFUSED, where, f"{self._cluster.alias} would refuse it: {in_words(error)}", remedy)

    def _problems(self, futures: Mapping[str, object], operation: str) -> Problems:
        problems: Problems = {}
        for name, future in futures.items():
            try:
                future.result()  # type: ignore[attr-defined]
            except calls.RAISED as error:
                cause = calls.cause_of(error)
                if cause.code() in calls.SILENT or is_refusal(cause):
                    self.unasked[f"not asked whether it would carry this out: {operation}: {in_words(cause)}"] = None
                elif cause.code() == KafkaError.THROTTLING_QUOTA_EXCEEDED:
                    self.unasked[f"its quota slows changes of topics down: {in_words(cause)}"] = None
                else:
                    problems[name] = self._problem(cause, operation, name)
        return problems


def rehearsed(plan: Plan, topology: Topology) -> Plan:
    """Return a plan with the notices of its targets.

    Args:
        plan: what would be done.
        topology: the declaration that it was made from.

    Raises:
        Overtaken: AB451, a target would refuse steps that came too late: the clusters should be observed again.
        Refused: AB451, a target would refuse steps; AB450, it would do so as long as brokers are down.
        EnvironmentFault: AB304 or AB306, a cluster cannot be connected to from here.
    """
    with ThreadPoolExecutor(max_workers=max(1, len(plan.clusters))) as pool:
        answers = list(pool.map(lambda cluster: _ask(cluster, topology.clusters[cluster.alias]), plan.clusters))
    if problems := [problem for found, _, _ in answers for problem in found]:
        is_overtaken = any(one for _, _, one in answers)
        raise Overtaken(problems) if is_overtaken else Refused(problems)
    clusters = (
        replace(cluster, warnings=(*cluster.warnings, *notices)) if notices else cluster
        for cluster, (_, notices, _) in zip(plan.clusters, answers, strict=True)
    )
    return replace(plan, clusters=tuple(clusters))


def _ask(part: ClusterPlan, cluster: Cluster) -> tuple[list[Problem], list[Notice], bool]:
    """Return what a target would refuse, what it was not asked, and whether it was overtaken."""
    made = {step.name: step.topic for step in part.steps if isinstance(step, CreateTopic)}
    grown = {step.name: step.topic.partitions for step in part.steps if isinstance(step, AddPartitions)}
    altered = {step.name: step.changes for step in part.steps if isinstance(step, AlterConfig)}
    if not (made or grown or altered):
        return [], [], False
    admin = _Rehearsing(cluster)
    asked = (admin.create_topics(made), admin.add_partitions(grown), admin.alter_configs(altered))
    problems = [problem for found in asked for problem in _folded(found, cluster)]
    return problems, [Notice(f"cluster {cluster.alias}", text) for text in admin.unasked], admin.is_overtaken


def _folded(found: Problems, cluster: Cluster) -> Iterator[Problem]:
    """Yield a problem that many topics share once, with the first of them."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name, problem in found.items():
        # Most messages name the topic.
        alike.setdefault((problem.code, problem.message.replace(name, "…")), []).append(name)
    for names in alike.values():
        first = found[names[0]]
        if len(names) == 1:
            yield first
            continue
        rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        where = f"{cluster.where}, topics {', '.join(names[:_SHOWN])}{rest}"
        yield replace(first, where=where)
