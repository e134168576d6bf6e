"""Which partitions a flow has now, and how they are shared among its tasks.

`refresh` looks up partitions and shares them out, for the whole run; the planner of rounds and the tasks read what it
announces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from concurrent.futures import Future

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, TopicDescription

from reconciler.model.base.errors import Problem
from reconciler.model.declared.flow import Flow
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.partition.shares import Place, Shares
from reconciler.state.confluent import clients
from reconciler.state.confluent.faults import is_refusal, refused

_TIMEOUT = 5.0


def matching(spec: FlowSpec) -> list[Place]:
    """Return the partitions that the flow takes, as the source cluster lists them now.

    Topics that may not be copied because of their names are included: see `without_name`.

    Raises:
        Unreachable: AB310, the source does not answer.
        EnvironmentFault: what `clients.ask` and `clients.make` raise: it does not let us in, or the like.
    """
    topics = clients.metadata(spec.source, _TIMEOUT)[1].topics
    mode = "translated" if spec.flow.offsets == "translated" else "identical"
    return [
        Place(name, partition, "" if spec.flow.nameless(name) else spec.flow.remote_topic(name), mode)
        for name in sorted(topics)
        if spec.flow.wants(name, spec.aliases)
        for partition in sorted(topics[name].partitions)
    ]


def hidden(spec: FlowSpec, found: Collection[str]) -> list[Problem]:
    """Return the plain names under `include` that the source does not list because our user may not see them.

    Args:
        spec: the flow.
        found: the topics that it lists.

    Raises:
        EnvironmentFault: what `clients.make` raises.
    """
    wanted = [name for name in spec.flow.topics.literals() if name not in found and spec.flow.wants(name, spec.aliases)]
    if not wanted:
        return []
    admin, seconds = clients.make(AdminClient, spec.source), spec.source.clients.admin.patience(_TIMEOUT)
    described = admin.describe_topics(TopicCollection(wanted), request_timeout=seconds)
    refusals = [name for name in wanted if _is_refused(described[name])]
    return [refused(spec.source, "READ", f"topic {name}") for name in refusals]


def _is_refused(answer: Future[TopicDescription]) -> bool:
    try:
        answer.result()
    except KafkaException as error:
        return is_refusal(error.args[0])
    return False


def without_name(flow: Flow, places: Iterable[Place], shares: Shares) -> dict[str, str]:
    """Return, by original, why its copy has no name of its own.

    This is the last guard before anything is written; `reconcile`, where there is one, has reported them already. Of
    several topics with one name the one that a task has keeps it.

    Args:
        flow: the flow.
        places: the partitions that it takes and that are not left out yet.
        shares: what its tasks have.
    """
    found: dict[str, str] = {}
    takers: dict[str, set[str]] = {}
    for topic, remote in dict.fromkeys((place.topic, place.remote) for place in places):
        if remote:
            takers.setdefault(remote, set()).add(topic)
        else:
            found[topic] = flow.nameless(topic) or "its copy has no name"
    for topic, shared in shares.topics.items():
        takers.setdefault(shared.remote, set()).add(topic)
    for remote, topics in takers.items():
        for topic in topics if len(topics) > 1 else ():
            if topic not in shares.topics:
                others = ", ".join(sorted(topics - {topic}))
                found[topic] = f"{remote} would be the copy of {others} too: a copy has one original"
    return found
