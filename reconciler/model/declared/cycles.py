"""Finds out whether a topic would travel for ever, by following real names along the flows.

`declare` calls it with names that are written in the file, `plan` with those of the source. Only names are followed, as
the result of a policy class or a rename rule is known for concrete names alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from reconciler.model.declared.flow import Flow

Way = tuple[Flow, ...]

# A name that grows never returns as it left: a flow that it takes this often it takes for ever.
_TURNS = 3
# Where every path gives another name there may be very many; then nothing is reported.
_MOST_VISITED = 2000


def endless_way(flows: Sequence[Flow], aliases: Collection[str], flow: Flow, topic: str) -> Way | None:
    """Return the ring of flows on which `topic` would go round for ever if `flow` took it; None where it ends.

    Args:
        flows: the enabled flows; `flow` is one of them.
        aliases: the clusters of the topology.
        flow: the first flow.
        topic: a name on its source cluster that it takes.
    """
    following: dict[str, list[Flow]] = {}
    for one in flows:
        following.setdefault(one.source, []).append(one)
    visited: set[tuple[str, str]] = set()
    path = [(flow, topic)]
    uses = Counter([flow.name])
    ahead = [_next(path[-1], following, aliases)]
    while path:
        step = next(ahead[-1], None)
        if step is None:
            ahead.pop()
            done, name = path.pop()
            uses[done.name] -= 1
            visited.add((done.name, name))
            continue
        onward, name = step
        if step in path:
            return tuple(one for one, _ in path[path.index(step) :])
        if uses[onward.name] + 1 == _TURNS:
            turns = [index for index, (one, _) in enumerate(path) if one.name == onward.name]
            return tuple(one for one, _ in path[turns[-1] :])
        if (onward.name, name) in visited:
            continue
        if len(visited) > _MOST_VISITED:
            return None
        path.append(step)
        uses[onward.name] += 1
        ahead.append(_next(step, following, aliases))
    return None


def way_said(ring: Way) -> str:
    """Return a ring as `a → b → a`."""
    return " → ".join((*(flow.source for flow in ring), ring[0].source))


def _next(
    step: tuple[Flow, str], following: dict[str, list[Flow]], aliases: Collection[str]
) -> Iterator[tuple[Flow, str]]:
    flow, topic = step
    remote = flow.remote_topic(topic)
    return ((onward, remote) for onward in following.get(flow.target, ()) if onward.takes(remote, aliases))
