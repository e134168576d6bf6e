"""Changes of a plan that are equal but for names, put together: each is printed once, with all the names.

Text and Markdown print the same groups.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from reconciler.model.planning.steps import AclChange, ClusterPlan, CreateTopic, GrantAcl, Notice, PlannedFlow
from reconciler.report.text.words import acl_reason

What = TypeVar("What", bound=Hashable)

OWN = "{}"
"""Placeholder for the names in which the changes of a group differ."""


@dataclass(frozen=True)
class GroupRow(Generic[What]):
    """One change.

    Attributes:
        what: it is; equal changes have it alike.
        name: whose change it is.
        dims: cluster, principal and the like, each a word; changes that differ in one of these alone, for all of their
            names, are one group.
    """

    what: What
    name: str
    dims: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group(Generic[What]):
    """Changes that are equal.

    Attributes:
        what: they are.
        names: whose changes they are, each once for all words of each of `dims`.
        dims: as those of rows, each with all of its words.
    """

    what: What
    names: tuple[str, ...]
    dims: tuple[tuple[str, ...], ...] = ()

    @property
    def changes(self) -> int:
        """How many changes they are."""
        number = len(self.names)
        for words in self.dims:
            number *= len(words)
        return number


def folded(rows: Iterable[GroupRow[What]]) -> list[Group[What]]:
    """Return groups in the order of their first rows: by names first, then by each of the dims."""
    names: dict[tuple[What, tuple[str, ...]], dict[str, None]] = {}
    for row in rows:
        names.setdefault((row.what, row.dims), {})[row.name] = None
    groups = [Group(what, tuple(found), tuple((word,) for word in dims)) for (what, dims), found in names.items()]
    for number in range(len(groups[0].dims) if groups else 0):
        words: dict[tuple[What, tuple[str, ...], tuple[tuple[str, ...], ...]], dict[str, None]] = {}
        for group in groups:
            others = (*group.dims[:number], (), *group.dims[number + 1 :])
            words.setdefault((group.what, group.names, others), {}).update(dict.fromkeys(group.dims[number]))
        groups = [
            Group(what, found, (*others[:number], tuple(told), *others[number + 1 :]))
            for (what, found, others), told in words.items()
        ]
    return groups


@dataclass(frozen=True)
class AccessRow:
    """A change for some principals, on some resources alike.

    Attributes:
        grants: whether it is granted; else it is revoked.
        operations: Kafka's names of them, in their order.
        kind: of the resources.
        place: from where, in words; empty where from everywhere.
        why: with `OWN` for the flow.
    """

    grants: bool
    operations: tuple[str, ...]
    kind: str
    place: str
    why: str

    def reason(self, flows: Sequence[str]) -> str:
        """Return why, with the flows that it is for."""
        return self.why.replace(f"flow {OWN}", f"flow{'s' * (len(flows) > 1)} {', '.join(flows)}")


def access_groups(steps: Iterable[AclChange]) -> list[Group[AccessRow]]:
    """Return changes of ACLs by operations and resources; the dims are clusters, principals (`User:x`), and flows."""
    operations: dict[tuple[AccessRow, tuple[str, ...], str], dict[str, None]] = {}
    # Most flows have one target, so where and for which flow is one dim until all are together.
    places: dict[tuple[str, str], str] = {}
    for step in steps:
        one = step.binding
        why = acl_reason(replace(step, flow=OWN))
        what = AccessRow(isinstance(step, GrantAcl), (), one.kind, one.place, why)
        place = places.setdefault((step.cluster, step.flow), str(len(places)))
        operations.setdefault((what, (one.who, place), str(one.pattern)), {})[one.operation] = None
    rows = [
        GroupRow(replace(what, operations=tuple(found)), name, dims) for (what, dims, name), found in operations.items()
    ]
    pairs = list(places)
    groups = []
    for group in folded(rows):
        at = [pairs[int(place)] for place in group.dims[1]]
        clusters, flows = (tuple(dict.fromkeys(pair[which] for pair in at)) for which in (0, 1))
        groups.append(Group(group.what, group.names, (clusters, group.dims[0], flows)))
    return groups


def new_topics(steps: Iterable[object]) -> dict[str, frozenset[str]]:
    """Return the copies that are made, by `cluster`."""
    found: dict[str, set[str]] = {}
    for step in steps:
        if isinstance(step, CreateTopic):
            found.setdefault(step.cluster, set()).add(step.name)
    return {cluster: frozenset(names) for cluster, names in found.items()}


def notice_groups(notices: Iterable[tuple[str, Notice]]) -> list[Group[str]]:
    """Return notices by their text, with `OWN` for the part that differs; the only dim are the clusters.

    Args:
        notices: each with the cluster that it is about.
    """
    told = tuple(notices)
    first = {(one.pattern, _subject(one)): one for _, one in told}
    groups = folded(
        GroupRow((one.pattern, "" if one.pattern else one.message), _subject(one), (at,)) for at, one in told
    )
    found = []
    for group in groups:
        pattern, message = group.what
        if pattern and len(group.names) == 1:
            alone = first[pattern, group.names[0]]
            found.append(Group(alone.message, (alone.subject,), group.dims))
        else:
            found.append(Group(message or pattern.replace(OWN, "…"), group.names, group.dims))
    return found


def becomes(cluster: ClusterPlan, flow: PlannedFlow) -> str:
    """Return `starts` of a flow that begins, or all of whose copies are made now; `changes`; or nothing."""
    fates = {change.fate for change in cluster.changes if (change.subject, change.name) == ("flow", flow.name)}
    made = sum(isinstance(step, CreateTopic) and step.topic.flow == flow.name for step in cluster.steps)
    is_first = cluster.declared is not None and cluster.declared.in_force is None
    if is_first or "begins" in fates or 0 < flow.topics <= made:
        return "starts"
    return "changes" if "changes" in fates else ""


def _subject(one: Notice) -> str:
    return f"{one.subject} ({', '.join(one.own)})" if one.own else one.subject
