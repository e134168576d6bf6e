"""Which items of a flow's lists match no topic or group of its source, and what was probably meant.

Pure. Called by `notices`. A topic or group may come later, so this is reported and prevents nothing; names that no
topic can have are refused by `declare`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from reconciler.model.base.suggestions import did_you_mean
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import (
    EVERYTHING,
    NameSelection,
    is_internal,
    is_literal,
    is_reserved,
    means_internal,
)

_SHOWN = 5


def unmatched(flow: Flow, there: Iterable[str]) -> Iterator[str]:
    """Yield a notice of each item of `topics` that matches none of the topics of the source.

    Args:
        flow: the flow.
        there: names of the source's topics.
    """
    names = frozenset(there)
    # Internal topics are not taken whatever matches them; excluding them again is no mistake.
    takeable = [name for name in sorted(names) if not is_internal(name)]
    idle = [item for item in NameSelection(flow.topics.include).idle(takeable) if item != EVERYTHING]
    # What means topics that are usually left behind may find one of them.
    left = [name for name in names if is_internal(name) and not is_reserved(name)]
    none_left = set(NameSelection(tuple(filter(means_internal, idle))).idle(left))
    missed = [("include", item) for item in idle if not means_internal(item) or item in none_left]
    missed += [("exclude", item) for item in NameSelection(flow.topics.exclude).idle(names)]
    yield from _said(missed, "topics", takeable, flow)


def left_behind(flow: Flow, there: Iterable[str], aliases: Collection[str]) -> list[str]:
    """Return the topics of the source that the flow leaves behind as they are called like internal ones.

    Args:
        flow: the flow.
        there: names of the source's topics.
        aliases: the clusters of the topology.
    """

    def is_left(name: str) -> bool:
        if not flow.topics.leaves_behind(name) or flow.policy.never_copies(name):
            return False
        return flow.target not in flow.policy.hops(name, aliases)

    return sorted(filter(is_left, there))


def unmatched_groups(flow: Flow, there: Collection[str]) -> Iterator[str]:
    """Yield a notice of each item of `groups.include` that matches none of the groups of the source.

    `groups.exclude` is not checked: it names what usually is not there.

    Args:
        flow: the flow.
        there: names of the source's groups that we may see.
    """
    idle = flow.groups.idle(there)
    yield from _said([("include", item) for item in idle if item != EVERYTHING], "groups", sorted(there), flow)


def _said(missed: list[tuple[str, str]], field: str, there: Collection[str], flow: Flow) -> Iterator[str]:
    """Yield the first items one by one, and the others together."""
    nothing = f"no {field.removesuffix('s')} of {flow.source}"
    for key, item in missed[:_SHOWN]:
        # An expression may be meant as a name of a group, in which any character may stand.
        is_name = is_literal(item) or field == "groups"
        near = did_you_mean(item, there, flow.policy.separator) if is_name else ""
        yield f"item {item} of {field}.{key} matches {nothing}{near}"
    if more := missed[_SHOWN:]:
        said = ", ".join(item for _, item in more[:_SHOWN]) + (" …" if len(more) > _SHOWN else "")
        yield f"{len(more)} more items of {field} match {nothing}: {said}"
