"""What translation tells of logs that come back: from where on a copy has its original, and what stands where."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from reconciler.checkpoints.translation.translate import Translator
from reconciler.failover.topics.diverged import Part
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.offsets.committed import Log, LogBounds
from reconciler.model.offsets.translation import Translated
from reconciler.model.recorded.failover import Cut

Clusters = tuple[Cluster, Cluster]
"""A flow's source and its target."""


def begins(
    topology: str, clusters: Clusters, flow: Flow, cuts: Collection[Cut], starts: Mapping[Log, LogBounds]
) -> dict[Log, int]:
    """Return from which offset of an original on its copy has its records.

    Args:
        topology: name of the topology.
        clusters: of the flow.
        flow: the one that is failed over.
        cuts: of its copies.
        starts: how the logs of the copies stand.

    Raises:
        AnabranchError: a cluster does not answer, or something there is refused.
    """
    found: dict[Log, int] = {}
    with Translator(*clusters, flow, topology) as translator:
        translator.refresh({(cut.topic, number) for cut in cuts for number in range(len(cut.ends))})
        for cut in cuts:
            for number, (source, _) in enumerate(cut.ends):
                told = translator.upstream(cut.topic, number, starts[cut.remote, number].start)
                found[cut.topic, number] = _begin(told, max(source, 0))
    return found


def _begin(told: Translated, copied: int) -> int:
    """Return from where on a copy has its original: where nobody tells, everything is kept."""
    if told.how == "expired":
        # The copy begins with what the original has deleted: it has all the rest.
        return 0
    return copied if told.offset is None else min(told.offset, copied)


def came_back(
    topology: str,
    clusters: Clusters,
    flow: Flow,
    cuts: Collection[Cut],
    there: Mapping[Log, LogBounds],
    here: Mapping[Log, LogBounds],
) -> Iterator[tuple[Part, Part]]:
    """Yield what of each partition of a copy came back, and where it stands now, as far as neither side deleted it.

    Args:
        topology: name of the topology.
        clusters: of the flow that copies back.
        flow: that flow.
        cuts: of the copies.
        there: how the logs of the copies stand.
        here: how those of the originals stand.

    Raises:
        AnabranchError: a cluster does not answer, or something there is refused.
    """
    parts = [
        (
            Part(cut.remote, number, max(end, 0), there[cut.remote, number].end),
            Part(cut.topic, number, max(begin, 0), here[cut.topic, number].end),
        )
        for cut in cuts
        for number, (begin, end) in enumerate(cut.ends)
    ]
    deleted = [
        (came, now)
        for came, now in parts
        if there[came.topic, came.partition].start > came.first or here[now.topic, now.partition].start > now.first
    ]
    yield from (pair for pair in parts if pair not in deleted)
    if not deleted:
        return
    with Translator(*clusters, flow, topology) as translator:
        translator.refresh({(came.topic, came.partition) for came, _ in deleted})
        for came, now in deleted:
            first, begin = there[came.topic, came.partition].start, here[now.topic, now.partition].start
            stands = now.first
            if first > came.first:
                stands = translator.downstream(came.topic, came.partition, first).offset or stands
            if begin > stands:
                stands = begin
                first = translator.upstream(came.topic, came.partition, begin).offset or first
            yield (
                Part(came.topic, came.partition, max(first, came.first), came.end),
                Part(now.topic, now.partition, stands, now.end),
            )
