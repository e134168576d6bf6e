"""What a flow takes within its limits: what is copied already first, then by name.

Pure. Whatever is created at a source, a target gets no more of it than was declared. No copy is ever given up for
a limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from reconciler.model.declared.flow import Flow
from reconciler.model.declared.limits import Beyond, Limit
from reconciler.model.planning.observed import ObservedCluster, ObservedTopic
from reconciler.model.planning.steps import AddPartitions, CreateTopic, Step


@dataclass(frozen=True)
class Within:
    """What of a flow's topics is within its limits.

    Attributes:
        originals: the topics at the source, by name; without the partitions for which there is no room.
        not_enlarged: by original, with how many partitions its copy stays.
        beyond: what is left out, by limit.
    """

    originals: tuple[ObservedTopic, ...]
    not_enlarged: Mapping[str, int] = field(default_factory=dict)
    beyond: tuple[Beyond, ...] = ()


def within_limits(flow: Flow, originals: Collection[ObservedTopic], target: ObservedCluster) -> Within:
    """Return which topics a flow may have at its target.

    A topic is taken as a whole or not at all, and one for which there is no room takes none from the others.

    Args:
        flow: the flow.
        originals: the topics that it takes, by name.
        target: its target cluster.
    """
    wanted = {one.name: max(one.partitions, flow.partitions or 0) for one in originals}
    copies = {one.name: target.topics.get(flow.remote_topic(one.name)) for one in originals}
    there = {name: copy.partitions for name, copy in copies.items() if copy is not None}
    room = _Room(flow, topics=len(there), partitions=sum(there.values()))
    kept: dict[str, ObservedTopic] = {}
    for original in sorted(originals, key=lambda one: (one.name not in there, one.name)):
        name = original.name
        if name in there:
            more = max(wanted[name] - there[name], 0)
            fits = not more or room.has(name, more)
            kept[name] = original if fits else replace(original, partitions=min(original.partitions, there[name]))
        elif room.has(name, wanted[name], is_new=True):
            kept[name] = original
    beyond = tuple(room.beyond(wanted, there))
    not_enlarged = {name: count for one in beyond for name, count in one.not_enlarged}
    return Within(tuple(kept[name] for name in sorted(kept)), not_enlarged, beyond)


class _Room:
    """What is left of a flow's limits of topics and partitions."""

    def __init__(self, flow: Flow, topics: int, partitions: int) -> None:
        self._flow, self._topics, self._partitions = flow, topics, partitions
        self._left_out: dict[Limit, list[str]] = {"topics": [], "partitions": []}
        self.not_enlarged: list[str] = []

    def has(self, name: str, partitions: int, is_new: bool = False) -> bool:
        """Take room for a topic, or for more partitions of one; note it where there is none."""
        limits = self._flow.limits
        if is_new and self._topics >= limits.topics:
            self._left_out["topics"].append(name)
        elif self._partitions + partitions > limits.partitions:
            (self._left_out["partitions"] if is_new else self.not_enlarged).append(name)
        else:
            self._topics += is_new
            self._partitions += partitions
            return True
        return False

    def beyond(self, wanted: Mapping[str, int], there: Mapping[str, int]) -> Iterator[Beyond]:
        """Yield what found no room, by limit."""
        limits, name = self._flow.limits, self._flow.name
        if left_out := self._left_out["topics"]:
            yield Beyond(name, "topics", limits.topics, len(wanted), tuple(left_out))
        if (left_out := self._left_out["partitions"]) or self.not_enlarged:
            found = sum(max(count, there.get(topic, 0)) for topic, count in wanted.items())
            kept = tuple((topic, there[topic]) for topic in self.not_enlarged)
            yield Beyond(name, "partitions", limits.partitions, found, tuple(left_out), kept)


def beyond_growth(flow: Flow, steps: Collection[Step]) -> Beyond | None:
    """Return what of the steps for a flow is more than one refresh may add; None where nothing is.

    Args:
        flow: the flow.
        steps: those of its plan.
    """
    grown = sorted((step for step in steps if isinstance(step, AddPartitions)), key=lambda step: step.name)
    made = sorted((step for step in steps if isinstance(step, CreateTopic)), key=lambda step: step.name)
    total, found, left_out, not_enlarged = 0, 0, list[str](), list[tuple[str, int]]()
    ordered: tuple[AddPartitions | CreateTopic, ...] = (*grown, *made)
    for step in ordered:
        before = step.found if isinstance(step, AddPartitions) else 0
        added = step.topic.partitions - before
        found += added
        if total + added <= flow.limits.growth:
            total += added
        elif isinstance(step, AddPartitions):
            not_enlarged.append((step.topic.source_topic, before))
        else:
            left_out.append(step.topic.source_topic)
    if not left_out and not not_enlarged:
        return None
    return Beyond(flow.name, "growth", flow.limits.growth, found, tuple(left_out), tuple(not_enlarged))
