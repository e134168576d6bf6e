"""Which items of a flow's lists match no topic of its source, and what was probably meant.

Pure. Called by `notices`. A topic may come later, so this is said and stands against nothing; names that no topic can
have are refused by `declare`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.model.flow import Flow
from reconciler.model.near import did_you_mean
from reconciler.model.selection import Names, is_internal, is_literal

EVERYTHING = ".*"

_SHOWN = 5


def unmatched(flow: Flow, there: Iterable[str]) -> Iterator[str]:
    """Yield what is to be said of each item of `topics` that matches none of the topics of the source.

    Args:
        flow: the flow.
        there: names of the source's topics.
    """
    names = frozenset(there)
    # Internal topics are not taken whatever matches them; excluding them again is no mistake.
    takeable = [name for name in sorted(names) if not is_internal(name)]
    missed = [("include", item) for item in flow.topics.include if item != EVERYTHING and not _matches(item, takeable)]
    missed += [("exclude", item) for item in flow.topics.exclude if not _matches(item, names)]
    for key, item in missed[:_SHOWN]:
        near = did_you_mean(item, takeable, flow.policy.separator) if is_literal(item) else ""
        yield f"item {item} of topics.{key} matches no topic of {flow.source}{near}"
    if more := missed[_SHOWN:]:
        said = ", ".join(item for _, item in more[:_SHOWN]) + (" …" if len(more) > _SHOWN else "")
        yield f"{len(more)} more items of topics match no topic of {flow.source}: {said}"


def _matches(item: str, names: Iterable[str]) -> bool:
    one = Names((item,))
    return any(name in one for name in names)
