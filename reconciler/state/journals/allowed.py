"""Checks permissions on journals before their first use."""

from __future__ import annotations

from collections.abc import Collection

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.state.confluent import clients
from reconciler.state.confluent.faults import is_refusal, no_connection, not_allowed
from reconciler.state.journals.topics import JournalTopic


def check(cluster: Cluster, topics: Collection[JournalTopic], seconds: float = 10.0) -> None:
    """Check that this user may read and write journals: without that, posted values would be lost without an error.

    Raises:
        EnvironmentFault: AB311, with everything that is refused.
        Unreachable: AB310, the cluster does not answer.
    """
    names = [topic.name for topic in topics]
    # The client must outlive its futures.
    reports = clients.Reports()
    admin = clients.make(AdminClient, cluster, reports=reports)
    described = admin.describe_topics(
        TopicCollection(names), include_authorized_operations=True, request_timeout=seconds
    )
    problems: list[Problem] = []
    for name in names:
        try:
            operations = described[name].result().authorized_operations
        except KafkaException as error:
            if not is_refusal(error.args[0]):
                admin.poll(0)
                raise no_connection(cluster, error.args[0], tuple(reports.errors)) from None
            problems.append(not_allowed(cluster, name, "READ and WRITE"))
            continue
        # Without a list of operations all count as allowed.
        allowed = {"READ", "WRITE"} if operations is None else {operation.name for operation in operations}
        if lacking := [operation for operation in ("READ", "WRITE") if operation not in allowed]:
            problems.append(not_allowed(cluster, name, " and ".join(lacking)))
    if problems:
        raise EnvironmentFault(problems)
