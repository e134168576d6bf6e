"""Translates bounds of logs during a failback: where a copy begins at its original, and where records came back."""

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
    """Return the first offset of each original that its copy holds.

    Args:
        topology: name of the topology.
        clusters: of the flow.
        flow: the flow that is failed over.
        cuts: of its copies.
        starts: bounds of the copies' logs.

    Raises:
        AnabranchError: a cluster does not answer, or something there is refused.
    """
    found: dict[Log, int] = {}
    with Translator(*clusters, flow, topology) as translator:
        translator.refresh({(cut.topic, number) for cut in cuts for number in range(len(cut.ends))})
        for cut in cuts:
            for number, (source, _) in enumerate(cut.ends):
                translated = translator.upstream(cut.topic, number, starts[cut.remote, number].start)
                found[cut.topic, number] = _begin(translated, max(source, 0))
    return found


def _begin(translated: Translated, copied: int) -> int:
    """Return the first offset of an original that its copy holds; if unknown, none is assumed to be copied."""
    if translated.how == "expired":
        # The copy begins with records that the original has deleted, so it holds all others.
        return 0
    return copied if translated.offset is None else min(translated.offset, copied)


def came_back(
    topology: str,
    clusters: Clusters,
    flow: Flow,
    cuts: Collection[Cut],
    there: Mapping[Log, LogBounds],
    here: Mapping[Log, LogBounds],
) -> Iterator[tuple[Part, Part]]:
    """Yield the part of each partition of a copy that came back, and its part of the original, without deleted records.

    Args:
        topology: name of the topology.
        clusters: of the flow that copies back.
        flow: that flow.
        cuts: of the copies.
        there: bounds of the copies' logs.
        here: bounds of the originals' logs.

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
