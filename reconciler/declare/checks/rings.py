"""Finds rings of flows in which a topic would come back under a name that is replicated again.

`crossings` calls it. Under the default policy a name shows where its topic came from, and a flow takes nothing that
came through its target: a ring of such flows ends by itself. Two kinds of ring do not:

- all flows keep the name (identity policy): the topic comes back as it left;
- no two flows in a row prefix it, and at least one does: its name then never shows that it came through the target of
  the next prefixing flow, and grows with every turn: `b.b.orders`.

The results of rename rules and policy classes are known for concrete names alone: some that the file suggests are
followed.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from reconciler.model.declared.cycles import endless_way
from reconciler.model.declared.flow import Flow
from reconciler.model.names.overlap import TooManyStates, common_name
from reconciler.model.names.patterns import compiled
from reconciler.model.names.renames import GROUP
from reconciler.model.names.selection import is_literal

Ring: TypeAlias = tuple[Flow, ...]
_PROBE = "orders"
_MOST_WAYS = 10_000
# What of an expression can be written as a name: escaped characters, wildcards, and parentheses, which are nothing.
_TOKEN = re.compile(r"\\([._-])|((?:\.|\\w|\[[^\]]*\])[*+])|\(\?P<\w+>|\(\?:|[()^$]")


def identity_rings(flows: Sequence[Flow]) -> list[Ring]:
    """Return rings of identity flows that some topic can travel.

    Names written out are followed exactly. Of regular expressions it is found out whether some name matches all that
    stand on a ring; where that is undecided, it counts as if one did.
    """
    keeping = [flow for flow in flows if flow.policy.keeps_names]
    rings: dict[frozenset[str], Ring] = {}
    for fellows in _by_written_name(keeping):
        for ring in _rings(fellows, lambda _flow, _following: True):
            rings.setdefault(frozenset(flow.name for flow in ring), ring)
    with_expressions = [flow for flow in keeping if flow.topics.expressions()]
    for ring in _travelled(with_expressions):
        rings.setdefault(frozenset(flow.name for flow in ring), ring)
    return list(rings.values())


def _travelled(flows: Sequence[Flow]) -> Iterator[Ring]:
    """Yield, for each flow on a ring that some name may travel by expressions, a shortest such ring."""
    following = {flow.name: [other for other in flows if other.source == flow.target] for flow in flows}
    for start in flows:
        ways: deque[Ring] = deque([(start,)])
        walked = 0
        while ways:
            way = ways.popleft()
            if way[-1].target == start.source and _may_travel(way):
                yield way
                break
            for flow in following[way[-1].name]:
                walked += 1
                if flow not in way and walked < _MOST_WAYS and _may_travel((*way, flow)):
                    ways.append((*way, flow))


def _may_travel(way: Ring) -> bool:
    try:
        return common_name([flow.topics for flow in way]) is not None
    except TooManyStates:
        return True


def growing_rings(flows: Sequence[Flow], aliases: Sequence[str]) -> list[Ring]:
    """Return rings that mix both policies and that a name provably travels for ever."""
    known = [flow for flow in flows if not flow.policy.is_written_out]
    rings = _rings(known, lambda flow, following: flow.policy.keeps_names or following.policy.keeps_names)
    return [
        ring
        for ring in rings
        if len({flow.policy.keeps_names for flow in ring}) > 1 and _travels_for_ever(ring, aliases)
    ]


def renaming_rings(flows: Sequence[Flow], aliases: Sequence[str]) -> list[tuple[Ring, str]]:
    """Return rings with rename rules or policy classes on which a name goes round for ever, each with such a name.

    Names that are written in the file are tried, and one for each expression; `plan` tries those of the real topics.
    """
    found: dict[frozenset[str], tuple[Ring, str]] = {}
    if not any(flow.policy.is_written_out for flow in flows):
        return []
    names = dict.fromkeys(name for flow in flows for name in _suggested(flow))
    for flow in flows:
        for name in names:
            ring = endless_way(flows, aliases, flow, name) if flow.takes(name, aliases) else None
            if ring and any(one.policy.is_written_out for one in ring):
                found.setdefault(frozenset(one.name for one in ring), (ring, name))
    return list(found.values())


def _suggested(flow: Flow) -> Iterator[str]:
    """Yield names that a flow's lists and rules suggest."""
    yield _PROBE
    for item in (*flow.topics.include, *(rule.pattern for rule in flow.policy.rules)):
        name = item if is_literal(item) else _TOKEN.sub(lambda token: token[1] or (_PROBE if token[2] else ""), item)
        if is_literal(name) and (name == item or compiled(item).fullmatch(name)):
            yield name
    yield from (rule.replacement for rule in flow.policy.rules if not GROUP.search(rule.replacement))


def _by_written_name(flows: Sequence[Flow]) -> Iterable[Ring]:
    """Return the sets of flows that take one name, for each that is written in some of them."""
    names = dict.fromkeys(name for flow in flows for name in flow.topics.literals())
    return dict.fromkeys(tuple(flow for flow in flows if flow.topics.matches(name)) for name in names)


def _rings(flows: Sequence[Flow], may_follow: Callable[[Flow, Flow], bool]) -> list[Ring]:
    """Return, for each flow on a ring, a shortest ring through it; each ring once."""
    following = {
        flow.name: [other for other in flows if other.source == flow.target and may_follow(flow, other)]
        for flow in flows
    }
    rings: dict[frozenset[str], Ring] = {}
    for flow in flows:
        ring = _shortest(flow, following)
        if ring is not None:
            rings.setdefault(frozenset(member.name for member in ring), ring)
    return list(rings.values())


def _shortest(start: Flow, following: dict[str, list[Flow]]) -> Ring | None:
    """Return a shortest way from `start` back to it, breadth first."""
    ways: deque[Ring] = deque([(start,)])
    seen: set[str] = set()
    while ways:
        way = ways.popleft()
        for flow in following[way[-1].name]:
            if flow.name == start.name:
                return way
            if flow.name not in seen:
                seen.add(flow.name)
                ways.append((*way, flow))
    return None


def _travels_for_ever(ring: Ring, aliases: Sequence[str]) -> bool:
    """Return whether some name is still taken after more turns than any name can make that ends."""
    names = dict.fromkeys((_PROBE, *(name for flow in ring for name in flow.topics.literals())))
    turns = [ring[start:] + ring[:start] for start in range(len(ring))]
    return any(_survives(name, turn * 3, aliases) for name in names for turn in turns)


def _survives(name: str, way: Ring, aliases: Sequence[str]) -> bool:
    for flow in way:
        if not flow.takes(name, aliases):
            return False
        name = flow.remote_topic(name)
    return True
