"""Checks the replication policy of each flow, as all layers together make it.

The loader calls `check` once every flow is known, before flows are compared with each other: that calls policies for
names, and one that cannot be used has none. Policy classes are imported here, for every command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.declare.checks.expand import Draft
from reconciler.declare.documents import codes
from reconciler.declare.documents.located import Located, SourcePlace
from reconciler.declare.documents.settings import policy_place
from reconciler.model.declared.flow import Flow
from reconciler.model.names.selection import is_literal, is_reserved
from reconciler.model.policies import custom
from reconciler.model.policies.types import TYPES

# The fields that go with one type alone.
_OF_TYPE = {field: kind for kind, policy_type in TYPES.items() for field in policy_type.own_fields}


def check(drafts: Sequence[Draft]) -> list[Located]:
    """Return what is wrong with the policies of the flows, each once."""
    found: list[Located] = []
    for draft in drafts:
        found += list(_of_draft(draft))
    return list(dict.fromkeys(found))


def _of_draft(draft: Draft) -> Iterator[Located]:
    broken = [*_without_its_type(draft), *_incomplete(draft), *_unusable_class(draft)]
    yield from broken
    yield from _never_taken(draft)
    if not broken:
        yield from _bad_names(draft)
        yield from _one_name(draft)


def _incomplete(draft: Draft) -> Iterator[Located]:
    kind = draft.flow.policy.kind
    needed = TYPES[kind].needs
    if needed and not draft.settings[f"policy.{needed}"].value:
        place = draft.settings[f"policy.{needed}"].place or draft.settings["policy.type"].place or draft.place
        message = f"policy type {kind} needs {needed}; found none"
        yield place.problem(codes.MISSING, message, f"for example: {TYPES[kind].example}")


def _without_its_type(draft: Draft) -> Iterator[Located]:
    """Nothing is accepted and ignored: fields of one type must not stand where another type holds."""
    written = draft.settings["policy.type"].place
    for key, kind in _OF_TYPE.items():
        place = draft.settings[f"policy.{key}"].place
        # A flow may well replace the policy that its defaults describe.
        if place and draft.flow.policy.kind != kind and (written is None or _layer(place) >= _layer(written)):
            message = f"{key} goes with policy type {kind}; found type {draft.flow.policy.kind}"
            yield place.problem(codes.WRONG_VALUE, message, f"set type: {kind} beside it, or remove {key}", at_key=True)


def _layer(place: SourcePlace) -> int:
    """Return how special the place of a setting is."""
    return {"replication": 1, "flows": 2}.get(str(place.path[0]), 0)


def _unusable_class(draft: Draft) -> Iterator[Located]:
    if fault := draft.flow.policy.type_fault():
        remedy = (
            f"install the package that has it where this command runs: an entry point in {custom.GROUP} "
            "that names a class; docs/reference/policies.md shows one"
        )
        yield _place(draft).problem(codes.BAD_POLICY_CLASS, f"expected a policy class; {fault}", remedy)


def _never_taken(draft: Draft) -> Iterator[Located]:
    """Yield topics that are internal under the flow's separator; `selections` finds those that are under any."""
    written = draft.settings["topics.include"]
    for index, item in enumerate(draft.flow.topics.include):
        if is_literal(item) and draft.flow.policy.never_copies(item) and not is_reserved(item) and written.place:
            message = f"internal topics are never replicated; found {item}, in which MirrorMaker 2 keeps its state"
            yield (written.place / index).problem(codes.NEVER_REPLICATED, message, "remove it")


def _bad_names(draft: Draft) -> Iterator[Located]:
    """Yield what is certain already: names that are written out."""
    flow = draft.flow
    for topic in _written_names(flow):
        fault = flow.nameless(topic)
        if fault:
            message = f"flow {flow.name}: expected a name for each copy that Kafka takes; {fault}"
            yield _place(draft, topic).problem(codes.BAD_NAME, message, f"correct the policy, or exclude {topic}")


def _one_name(draft: Draft) -> Iterator[Located]:
    flow = draft.flow
    takers: dict[str, list[str]] = {}
    for topic in _written_names(flow):
        if flow.nameless(topic) is None:
            takers.setdefault(flow.remote_topic(topic), []).append(topic)
    for remote, topics in takers.items():
        if len(topics) > 1:
            said = f"found {remote} for {', '.join(topics)} of {flow.source}"
            message = f"flow {flow.name}: expected a name of its own for each copy; {said}"
            remedy = "a copy has one original: correct the policy, or exclude all of them but one"
            yield _place(draft, topics[-1]).problem(codes.ONE_NAME, message, remedy)


def _written_names(flow: Flow) -> list[str]:
    return list(dict.fromkeys(filter(flow.topics.matches, flow.topics.literals())))


def _place(draft: Draft, topic: str | None = None) -> SourcePlace:
    policy = draft.flow.policy
    rule = policy.rule_for(topic) if topic else None
    return policy_place(draft.settings, policy.rules.index(rule) if rule else None) or draft.place
