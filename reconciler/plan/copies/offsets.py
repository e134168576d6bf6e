"""Which offsets each copy gets, and why: `identical` where it can be held, else `translated`.

Pure. `desired` calls it for every remote topic; the plan shows the result, and an apply pins it in the ownership
record.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from reconciler.model.acls.own_access import PADDING_OPERATIONS
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.topology import Topology
from reconciler.model.planning.observed import (
    NO_BOUND,
    OLD_TIMESTAMP_KEYS,
    TIMESTAMP_KEYS,
    ObservedCluster,
    ObservedTopic,
)
from reconciler.model.recorded.ownership import OwnedTopic
from reconciler.plan.copies.limits import Within, within_limits

Observed = Mapping[str, ObservedCluster]
Mode = Literal["identical", "translated"]

LARGEST_PADDING = 10**9
"""Offsets that are padded at most in one remote topic."""


@dataclass(frozen=True)
class Choice:
    """One topic that a flow takes, and the offsets that its copy gets.

    Attributes:
        flow: the flow.
        original: the topic at the source.
        remote: its copy's name.
        against: why its offsets cannot be identical; None where they can.
        padding: offsets to fill before the first record, by partition; those that need none are left out.
        blocked: why it cannot be copied there at all; None where it can.
        kept_at: with how many partitions the copy stays, as the flow's limits allow no more; None where it grows.
    """

    flow: Flow
    original: ObservedTopic
    remote: str
    against: str | None
    padding: Mapping[int, int]
    blocked: str | None = None
    kept_at: int | None = None

    @property
    def mode(self) -> Mode:
        """The offsets mode."""
        return "identical" if self.against is None else "translated"


def choices(topology: Topology, observed: Observed, targets: Collection[str]) -> tuple[Choice, ...]:
    """Return the choice for every topic that a flow into `targets` takes within its limits.

    They come by cluster, remote topic and flow.

    Args:
        topology: what is declared.
        observed: the targets and the sources of the flows into them.
        targets: aliases of target clusters.
    """
    flows = topology.flows_into(targets)
    fitting = {flow.name: limited(flow, topology, observed) for flow in flows}
    taken = [(flow, original) for flow in flows for original in fitting[flow.name].originals]
    takers: dict[tuple[str, str], list[tuple[Flow, ObservedTopic]]] = {}
    for flow, original in taken:
        takers.setdefault((flow.target, flow.remote_topic(original.name)), []).append((flow, original))
    found = [
        replace(
            _choice(flow, original, takers[flow.target, flow.remote_topic(original.name)], observed[flow.target]),
            kept_at=fitting[flow.name].not_enlarged.get(original.name),
        )
        for flow, original in taken
    ]
    identical: dict[tuple[str, str], Choice] = {}
    for choice in found:
        if choice.against is None:
            identical.setdefault((choice.flow.target, choice.remote), choice)
    found = [
        replace(
            choice,
            blocked=_blocked(choice, identical.get((choice.flow.target, choice.remote)), observed[choice.flow.target]),
        )
        for choice in found
    ]
    found = [replace(one, blocked=one.blocked or unfit(one, observed[one.flow.target])) for one in found]
    return tuple(sorted(found, key=lambda choice: (choice.flow.target, choice.remote, choice.flow.name)))


def limited(flow: Flow, topology: Topology, observed: Observed) -> Within:
    """Return which of the topics that a flow takes are within its limits, and what is beyond them."""
    return within_limits(flow, taken_topics(flow, topology, observed), observed[flow.target])


def taken_topics(flow: Flow, topology: Topology, observed: Observed) -> tuple[ObservedTopic, ...]:
    """Return the topics at the source that a flow takes, by name."""
    topics = observed[flow.source].topics
    return tuple(topics[name] for name in sorted(topics) if flow.takes(name, topology.aliases))


def hindrances(existing: ObservedTopic) -> tuple[str, ...]:
    """Return why batches could not pass unchanged into a topic that stands as it is, each in a few words."""
    found = []
    if existing.held:
        found.append(f"it holds {existing.held:,} offsets of its own")
    found += mode_hindrances(existing)
    bounds = TIMESTAMP_KEYS if existing.effective.keys() & set(TIMESTAMP_KEYS) else OLD_TIMESTAMP_KEYS
    for key in bounds:
        if existing.effective.get(key, NO_BOUND) != NO_BOUND:
            found.append(f"{key} is {existing.effective[key]}, below the maximum")
    return tuple(found)


def mode_hindrances(existing: ObservedTopic) -> list[str]:
    """Return which settings of a topic change every batch that is written there, each in a few words."""
    found = []
    if existing.effective.get("message.timestamp.type", "CreateTime") != "CreateTime":
        found.append(f"message.timestamp.type is {existing.effective['message.timestamp.type']}, not CreateTime")
    if existing.effective.get("compression.type", "producer") != "producer":
        found.append(f"compression.type is {existing.effective['compression.type']}, not producer")
    return found


def _choice(
    flow: Flow, original: ObservedTopic, takers: Collection[tuple[Flow, ObservedTopic]], target: ObservedCluster
) -> Choice:
    remote = flow.remote_topic(original.name)
    padding = _padding(original, target.topics.get(remote))
    record = target.owned.get(remote)
    against = (
        _settled(flow, record)
        or _begun_elsewhere(flow, original, record)
        or _repeating(flow, record)
        or _shared(flow, original, takers, record)
        or _unpaddable(original, target.topics.get(remote), sum(padding.values()))
    )
    return Choice(flow, original, remote, against, {} if against else padding)


def _settled(flow: Flow, record: OwnedTopic | None) -> str | None:
    """Return why offsets are translated whatever the logs would allow."""
    if flow.offsets == "translated":
        return "translated offsets are demanded"
    if record is not None and record.offsets == "translated":
        return "the copy was begun with translated offsets"
    return None


def _begun_elsewhere(flow: Flow, original: ObservedTopic, record: OwnedTopic | None) -> str | None:
    """Return a reason where the copy will not begin where its original does; a begun one goes on as it is."""
    if record is not None or not flow.start.moves(original.name):
        return None
    return f"its copy begins elsewhere than the original (start: {flow.start.at})"


def _repeating(flow: Flow, record: OwnedTopic | None) -> str | None:
    """Return a reason where the copy takes no transactions; a begun one goes on as it is."""
    return None if record is not None or not flow.repeats else "identical offsets take no delivery: at-least-once"


def _blocked(choice: Choice, other: Choice | None, target: ObservedCluster) -> str | None:
    """Return why a copy with translated offsets cannot be made: one with identical offsets takes no other records."""
    if choice.against is None:
        return None
    if choice.flow.offsets == "identical":
        return f"identical offsets are demanded, and cannot be held: {choice.against}"
    if other is not None:
        return f"{choice.remote} is the copy of {other.flow.source}'s {other.original.name}, with identical offsets"
    record = target.owned.get(choice.remote)
    if record is not None and record.offsets == "identical" and choice.remote in target.topics:
        return (
            f"{choice.remote} was begun with identical offsets: delete it, or demand nothing (offsets: auto). "
            f"{choice.against}"
        )
    return None


def unfit(choice: Choice, target: ObservedCluster) -> str | None:
    """Return why a topic that another tool declares cannot be copied to; None where it can, or an apply makes it."""
    flow, original, remote = choice.flow, choice.original, choice.remote
    if flow.create:
        return None
    existing = target.topics.get(remote)
    if existing is None:
        counted = f"{original.partitions} partition{'' if original.partitions == 1 else 's'}"
        return f"{remote} is not there, and flow {flow.name} makes none (create: false): have it made with {counted}"
    if existing.partitions < original.partitions:
        return f"{remote} has {existing.partitions} partitions, and its original {original.partitions}: have it grow"
    hindering = [] if choice.against else mode_hindrances(existing)
    if hindering:
        return f"identical offsets could not be held in {remote}: {', '.join(hindering)}; have that set otherwise"
    return None


def _shared(
    flow: Flow, original: ObservedTopic, takers: Collection[tuple[Flow, ObservedTopic]], record: OwnedTopic | None
) -> str | None:
    """Return why a topic that is one of several originals of one copy cannot have its offsets there."""
    sources = {(other.source, topic.name): other.name for other, topic in takers}
    mine = (flow.source, original.name)
    if len(sources) == 1:
        return None
    holder = None if record is None else (record.source, record.source_topic)
    if holder == mine:
        # It was there first, and stays as it was pinned.
        return None
    if holder in sources:
        return f"{flow.remote_topic(original.name)} is the copy of {holder[0]}'s {holder[1]} already"
    said = " and ".join(f"{alias}'s {name} (flow {taker})" for (alias, name), taker in sorted(sources.items()))
    return f"{flow.remote_topic(original.name)} would be the copy of {said}: one offset cannot be two"


def _padding(original: ObservedTopic, existing: ObservedTopic | None) -> dict[int, int]:
    """Return how many offsets each empty partition of the copy lacks before its original's first record."""
    found: dict[int, int] = {}
    for partition in range(original.partitions):
        bounds = original.bounds(partition)
        if existing is None or partition >= existing.partitions:
            copied: tuple[int, int] | None = (0, 0)
        else:
            copied = existing.bounds(partition)
        if bounds and copied and copied[0] == copied[1] < bounds[0]:
            found[partition] = bounds[0] - copied[1]
    return found


def _unpaddable(original: ObservedTopic, existing: ObservedTopic | None, offsets: int) -> str | None:
    """Return why a copy cannot be padded to where its original begins."""
    if not offsets:
        return None
    begin = f"its logs begin {offsets:,} offsets above the copy's end"
    if offsets > LARGEST_PADDING:
        return f"{begin}, and at most {LARGEST_PADDING:,} are padded in a topic"
    if original.effective.get("cleanup.policy") == "compact":
        return f"{begin}, and brokers refuse to delete padding from a compacted topic (cleanup.policy=compact)"
    if existing is not None and existing.lacks(PADDING_OPERATIONS):
        return f"{begin}, and padding needs {' and '.join(PADDING_OPERATIONS)} on the copy, which is not allowed"
    return None
