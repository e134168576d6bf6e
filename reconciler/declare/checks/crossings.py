"""Checks the flows of a topology against each other.

The loader calls `check` once every flow is known. Flows that are not enabled are left out: a standby flow, the reverse
of one that runs, is no mistake.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, permutations

from reconciler.declare.checks.expand import Draft
from reconciler.declare.checks.rings import Ring, growing_rings, identity_rings, renaming_rings
from reconciler.declare.documents import codes, words
from reconciler.declare.documents.located import Located, SourcePlace
from reconciler.model.declared.cycles import way_said
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import EVERYTHING, Selection, is_literal

_PAIR = 2
_ONE_WRITER = {
    codes.WRITTEN_TWICE: (
        "use policy default, which keeps the sources apart, exclude the topic from one flow, or offsets: auto"
    ),
    codes.ONE_NAME: "a copy has one original: correct a policy, or exclude one of the topics from its flow",
}


def check(drafts: Sequence[Draft], aliases: Sequence[str], are_all: bool = True) -> list[Located]:
    """Return what the enabled flows cannot do together.

    Args:
        drafts: flows between declared clusters.
        aliases: every declared cluster.
        are_all: whether there are no others, so that what none of these does is done by none.
    """
    enabled = [draft for draft in drafts if draft.flow.enabled]
    return [
        *_ambiguous_aliases(enabled, aliases),
        *_cycles(enabled, aliases),
        *_coming_back(enabled, aliases),
        *_taken_twice(enabled),
        *_taken_back_twice(enabled),
        *_written_twice(enabled),
        *_never_begun(enabled),
        *(_begun_nowhere(enabled) if are_all else ()),
        *(_nobody_taken_along(enabled) if are_all else ()),
        *_repeated_at_one_place(enabled),
    ]


def _ambiguous_aliases(drafts: Sequence[Draft], aliases: Sequence[str]) -> Iterator[Located]:
    """A name such as us-east-orders must show which part of it is the alias."""
    told: set[tuple[SourcePlace, str]] = set()
    for draft in drafts:
        policy, alias = draft.flow.policy, draft.flow.source
        place = draft.settings["policy.separator"].place
        if not policy.prefixes or place is None or (place, alias) in told:
            continue
        longer = next((other for other in aliases if other.startswith(f"{alias}{policy.separator}")), None)
        if policy.separator in alias:
            found = f"separator {policy.separator} is a part of the alias {alias}"
            name = f"{alias}{policy.separator}orders"
        elif longer is not None:
            found = f"the alias {longer} begins with {alias} and the separator {policy.separator}"
            name = f"{longer}{policy.separator}orders"
        else:
            continue
        told.add((place, alias))
        message = f"{found}: {name} would not show its source"
        yield place.problem(codes.AMBIGUOUS_ALIAS, message, "choose another separator, or rename the cluster")


def _never_begun(drafts: Sequence[Draft]) -> Iterator[Located]:
    """A copy cannot begin at a time that has not come yet, or never will."""
    told: set[SourcePlace] = set()
    for draft in drafts:
        start, place = draft.flow.start, draft.settings["start"].place
        if start.at != "timestamp" or place is None or place in told:
            continue
        told.add(place)
        written = place / "timestamp"
        if start.timestamp < 0:
            message = f"expected a time since 1970; found {words.found(written.value)}"
            yield written.problem(codes.WRONG_VALUE, message, "for example: timestamp: 2026-11-01T00:00:00Z")
        elif start.timestamp > time.time() * 1000:
            message = f"expected a time that is over; {written.value} is yet to come"
            yield written.problem(codes.WRONG_VALUE, message, "use start: latest to copy what comes from now on")


def _begun_nowhere(drafts: Sequence[Draft]) -> Iterator[Located]:
    """A start is declared for topics that are taken, by some flow to which the declaration applies."""
    taken: dict[SourcePlace, bool] = {}
    for draft in drafts:
        place = draft.settings["start"].place
        if place is None:
            continue
        for name, _ in draft.flow.start.offsets:
            at = place / "offsets" / name
            taken[at] = taken.get(at, False) or draft.flow.topics.matches(name)
    for at, is_taken in taken.items():
        if not is_taken:
            message = f"no flow that begins so takes a topic {at.path[-1]}: nothing would begin there"
            yield at.problem(codes.WRONG_VALUE, message, "correct the name, or take the topic", at_key=True)


def _nobody_taken_along(drafts: Sequence[Draft]) -> Iterator[Located]:
    """Offsets are committed for groups that are named; MirrorMaker 2 takes all where none are named."""
    named: dict[SourcePlace, bool] = {}
    for draft in drafts:
        place = draft.settings["groups.sync-offsets"].place
        if place is not None and draft.flow.groups.sync_offsets:
            named[place] = named.get(place, False) or bool(draft.flow.groups.include)
    for place, is_somebody in named.items():
        if not is_somebody:
            message = "sync-offsets takes no group along, as groups.include names none"
            yield place.problem(codes.WRONG_VALUE, message, 'name them; all are include: [".*"]')


def _repeated_at_one_place(drafts: Sequence[Draft]) -> Iterator[Located]:
    """A record that may be repeated cannot have its original's offset."""
    told: set[SourcePlace] = set()
    for draft in drafts:
        place = draft.settings["delivery"].place
        if not draft.flow.repeats or draft.flow.offsets != "identical" or place is None or place in told:
            continue
        told.add(place)
        message = (
            f"flow {draft.flow.name} demands identical offsets, which are exactly once by themselves; found "
            f"{words.found(place.value)}"
        )
        yield place.problem(codes.WRONG_VALUE, message, "leave delivery out, or take offsets: auto or translated")


def _cycles(drafts: Sequence[Draft], aliases: Sequence[str]) -> Iterator[Located]:
    by_name = {draft.flow.name: draft for draft in drafts}
    flows = [_as_it_will_run(draft.flow) for draft in drafts]
    both_ways: dict[SourcePlace, list[Ring]] = {}
    for ring in identity_rings(flows):
        if len(ring) == _PAIR:
            both_ways.setdefault(_last(ring, by_name).place, []).append(ring)
        else:
            way = f"{way_said(ring)} keeps names (policy identity){_reversed(ring)}"
            message = f"topics would come back under the same name: {way}"
            remedy = "use policy default for one of these flows, or name topics so that none passes all of them"
            yield _last(ring, by_name).place.problem(codes.CYCLE, message, remedy)
    for place, rings in both_ways.items():
        pairs = words.either([f"{ring[0].source} and {ring[0].target}" for ring in rings], "and")
        turned = _reversed([flow for ring in rings for flow in ring])
        message = f"policy identity copies the same topics both ways between {pairs}{turned}"
        remedy = "use policy default, disable one direction, or let each take topics of its own, as dc1-.* and dc2-.*"
        yield place.problem(codes.IDENTITY_BOTH_WAYS, message, remedy)
    for ring in growing_rings(flows, aliases):
        prefixing = next(flow for flow in ring if flow.policy.always_prefixes)
        name = prefixing.remote_topic(prefixing.remote_topic("orders"))
        message = f"topics would come back longer each time round {way_said(ring)}: {name}"
        remedy = "use one policy for all of these flows, or exclude remote topics from one of them"
        yield _last(ring, by_name).place.problem(codes.CYCLE, message, remedy)


def _as_it_will_run(flow: Flow) -> Flow:
    """Return a flow as failback will run it next, where it is failed over: back, under the same names."""
    if flow.failed_over and flow.policy.keeps_names:
        return replace(flow, source=flow.target, target=flow.source)
    return flow


def _reversed(flows: Iterable[Flow]) -> str:
    names = list(dict.fromkeys(flow.name for flow in flows if flow.failed_over))
    if not names:
        return ""
    return f"; failed over, and so counted the other way round: {words.either(names, 'and')}"


def _coming_back(drafts: Sequence[Draft], aliases: Sequence[str]) -> Iterator[Located]:
    by_name = {draft.flow.name: draft for draft in drafts}
    for ring, name in renaming_rings([draft.flow for draft in drafts], aliases):
        message = f"topics would go round for ever: {way_said(ring)}; {name}, for example"
        remedy = "name copies so that no flow takes them back, exclude those names, or use policy default"
        yield _last(ring, by_name).place.problem(codes.CYCLE, message, remedy)


def _last(ring: Ring, by_name: dict[str, Draft]) -> Draft:
    """Return the flow of a ring that was declared last: the one that closed it."""
    order = list(by_name)
    return by_name[max((flow.name for flow in ring), key=order.index)]


def _taken_twice(drafts: Sequence[Draft]) -> Iterator[Located]:
    """Several flows may join one pair of clusters, if no topic matches two."""
    for first, second in combinations(drafts, 2):
        if (first.flow.source, first.flow.target) == (second.flow.source, second.flow.target):
            common = _common(first.flow.topics, second.flow.topics)
            if common is not None:
                message = f"flows {first.flow.name} ({first.place.line}) and {second.flow.name} both take {common}"
                remedy = "exclude it from one of them, or keep one flow"
                yield _include(second).problem(codes.TAKEN_TWICE, message, remedy)


def _taken_back_twice(drafts: Sequence[Draft]) -> Iterator[Located]:
    """What failback will copy back under the same names no other flow may copy there."""
    for first, second in permutations(drafts, 2):
        back, other = _as_it_will_run(first.flow), second.flow
        if back is first.flow or other.failed_over or (back.source, back.target) != (other.source, other.target):
            continue
        common = _common(back.topics, other.topics) if other.policy.keeps_names else None
        if common is not None:
            message = (
                f"flow {other.name} takes {common}, which failback of flow {back.name} ({first.place.line}) "
                f"copies from {back.source} to {back.target} as well"
            )
            remedy = f"disable flow {other.name} until flow {back.name} has failed back, or exclude it from one of them"
            yield _include(second).problem(codes.TAKEN_TWICE, message, remedy)


def _common(one: Selection, other: Selection) -> str | None:
    """Return something that both selections take for certain."""
    for name in (*one.literals(), *other.literals()):
        if one.matches(name) and other.matches(name):
            return name
    for wide, narrow in ((one, other), (other, one)):
        for item in narrow.include:
            same = item in wide.include and set(wide.exclude) == set(narrow.exclude)
            if not is_literal(item) and (same or (EVERYTHING in wide.include and not wide.exclude)):
                return item
    return None


def _written_twice(drafts: Sequence[Draft]) -> Iterator[Located]:
    """A remote topic has one writer, or its offsets could not follow its original's.

    Of originals at several sources, where no flow demands identical offsets (`offsets: auto`), the plan decides, and
    reports what is not copied. Two originals at one source never share a copy, whichever flows take them.
    """
    writers: dict[tuple[str, str], list[tuple[Draft, str]]] = {}
    clashes: dict[tuple[str, SourcePlace], list[str]] = {}
    for draft in drafts:
        flow = draft.flow
        for name in filter(flow.topics.matches, dict.fromkeys(flow.topics.literals())):
            remote = flow.remote_topic(name)
            before = writers.setdefault((flow.target, remote), [])
            for code, clash in _clashes(draft, name, remote, before):
                clashes.setdefault((code, _include(draft)), []).append(clash)
            before.append((draft, name))
    for (code, place), messages in clashes.items():
        more = f", and {len(messages) - 1} more such" if len(messages) > 1 else ""
        yield place.problem(code, messages[0] + more, _ONE_WRITER[code])


def _clashes(draft: Draft, name: str, remote: str, before: Sequence[tuple[Draft, str]]) -> Iterator[tuple[str, str]]:
    """Yield the reasons against one more original of a remote topic, each with its code, at most one of a code."""
    flow, found = draft.flow, dict[str, str]()
    for first, original in before:
        flows = f"flows {first.flow.name} ({first.place.line}) and {flow.name} both write {remote} on {flow.target}"
        if first.flow.source != flow.source:
            if "identical" in (first.flow.offsets, flow.offsets):
                found.setdefault(codes.WRITTEN_TWICE, flows)
        elif original != name and first is not draft:
            # Of one flow alone `policies` reports it, with the rule.
            found.setdefault(codes.ONE_NAME, f"{flows}, the copy of {flow.source}'s {original} and of its {name}")
    yield from found.items()


def _include(draft: Draft) -> SourcePlace:
    """Return where a flow's topics are chosen; where its default is built in, the flow itself."""
    return draft.settings["topics.include"].place or draft.place
