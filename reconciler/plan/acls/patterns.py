"""Which ACL resource patterns cover the topics that a flow takes, and their copies: the narrowest that are safe.

Pure. ACLs have names and prefixes alone, so a regular expression becomes the plain text that it begins with, or else
every topic. Called by `requirements`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from reconciler.model.acls.requirements import ALL, ResourcePattern
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import alternatives, is_literal

_OPTIONAL = frozenset("*?{")
_SPECIAL = frozenset(".^$*+?{}[]\\|()")


def patterns_of(item: str) -> tuple[ResourcePattern, ...]:
    """Return what covers an item of an include list: a plain name, or a regular expression (Python's `re`)."""
    if is_literal(item):
        return (ResourcePattern(item),)
    return narrowed(_pattern(alternative) for alternative in alternatives(item))


def originals(flow: Flow, aliases: Collection[str]) -> tuple[ResourcePattern, ...]:
    """Return what covers the topics that a flow takes at its source.

    Args:
        flow: the flow.
        aliases: the clusters of the topology.
    """
    return narrowed(pattern for item in _wanted(flow, aliases) for pattern in patterns_of(item))


def copies(flow: Flow, aliases: Collection[str]) -> tuple[ResourcePattern, ...]:
    """Return what covers the remote topics of a flow at its target; takes what `originals` does."""
    return narrowed(
        copy for item in _wanted(flow, aliases) for original in patterns_of(item) for copy in _copies_of(flow, original)
    )


def narrowed(patterns: Iterable[ResourcePattern]) -> tuple[ResourcePattern, ...]:
    """Return patterns without those that another one covers, each once."""
    once = dict.fromkeys(patterns)
    if ALL in once:
        return (ALL,)
    prefixes = {pattern.name for pattern in once if pattern.prefixed}
    lengths = {len(prefix) for prefix in prefixes}

    def is_covered(one: ResourcePattern) -> bool:
        longest = len(one.name) - one.prefixed
        return any(length <= longest and one.name[:length] in prefixes for length in lengths)

    return tuple(one for one in once if not is_covered(one))


def _wanted(flow: Flow, aliases: Collection[str]) -> Iterator[str]:
    """Yield the items of the include list that may take a topic."""
    return (item for item in flow.topics.include if not is_literal(item) or flow.takes(item, aliases))


def _copies_of(flow: Flow, original: ResourcePattern) -> Iterator[ResourcePattern]:
    if not (original.prefixed or original.is_everything):
        if flow.nameless(original.name) is None:
            yield ResourcePattern(flow.remote_topic(original.name))
        return
    yield from flow.policy.acl_patterns(flow.source, original, flow.topics.matches)


def _pattern(expression: str) -> ResourcePattern:
    """Return what covers an expression without bars outside of groups."""
    fixed, rest = _begin(expression.removeprefix("^"))
    if fixed and rest in ("", "$"):
        return ResourcePattern(fixed)
    return ResourcePattern(fixed, prefixed=True) if fixed else ALL


def _begin(expression: str) -> tuple[str, str]:
    """Split an expression into the plain text that it begins with, and the rest."""
    fixed, at = "", 0
    while at < len(expression):
        length = 2 if expression[at] == "\\" else 1
        character = expression[at : at + length][-1]
        # A letter or digit behind a backslash means something else.
        if character.isalnum() if length > 1 else character in _SPECIAL:
            break
        if expression[at + length : at + length + 1] in _OPTIONAL:
            break
        fixed += character
        at += length
    return fixed, expression[at:]
