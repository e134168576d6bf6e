"""What Pulumi tells while it works, put together: which resources are done, which failed and why, what it means to do.

`automation` hands `heard` to Pulumi's library, which calls it from another thread.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pulumi.automation import EngineEvent, OpType

from stacks.command import plain
from stacks.names import ACL_TYPE, TOPIC_TYPE, name_in, type_in

LAST_EVENT_SECONDS = 5.0
"""How long the last event may take after the command has ended."""

_LOOKS = frozenset({OpType.READ, OpType.READ_REPLACEMENT, OpType.REFRESH})
"""Operations that change nothing and prove nothing."""

_HARMLESS = frozenset({*_LOOKS, OpType.SAME, OpType.IMPORT})
"""What may happen to a resource that is declared, whether or not the plan has a step for it: it stays as it stands."""

_FRAMES = re.compile(r"(1 error occurred: \* )|((creating|updating|deleting|importing) urn:\S+: )")


class Events:
    """What one run of Pulumi has told.

    Args:
        on_done: called with the name of each topic or ACL that is done, as soon as it is.

    Attributes:
        begun: names of the topics and ACLs that it has begun to change.
        done: of those that it is done with.
        planned: what it would do to topics and ACLs, by their names.
        differing: fields for which it would, by the same names.
    """

    def __init__(self, on_done: Callable[[str], None] = lambda name: None) -> None:
        self._on_done = on_done
        self._over = threading.Event()
        self._errors: list[tuple[str, str]] = []
        self._broken: set[str] = set()
        self.begun: set[str] = set()
        self.done: set[str] = set()
        self.planned: dict[str, OpType] = {}
        self.differing: dict[str, list[str]] = {}

    def heard(self, event: EngineEvent) -> None:
        """Take one event in."""
        if (told := event.diagnostic_event) is not None and told.severity == "error":
            self._errors.append((told.urn or "", plain(told.message)))
        if (before := event.resource_pre_event) is not None and _is_ours(before.metadata.urn):
            name, operation = name_in(before.metadata.urn), OpType(before.metadata.op)
            if before.planning:
                self.planned[name] = operation
                self.differing[name] = sorted(before.metadata.diffs or ())
            elif operation not in _HARMLESS:
                self.begun.add(name)
        if (failed := event.res_op_failed_event) is not None:
            self._broken.add(failed.metadata.urn)
        if (after := event.res_outputs_event) is not None and not after.planning:
            self._finished(after.metadata.urn, after.metadata.op)
        if event.cancel_event is not None:
            self._over.set()

    def _finished(self, urn: str, op: OpType) -> None:
        if _is_ours(urn) and op not in _LOOKS:
            self.done.add(name_in(urn))
            self._on_done(name_in(urn))

    def wait(self) -> None:
        """Wait for the last event: the command may have ended before its events were taken in."""
        self._over.wait(LAST_EVENT_SECONDS)

    @property
    def failures(self) -> Mapping[str, str]:
        """Why resources failed, by their names."""
        told: dict[str, dict[str, None]] = {}
        for urn, words in self._errors:
            # A topic that is protected, say, is refused before anything is tried.
            if _is_ours(urn) and (cause := _cause(words)):
                told.setdefault(name_in(urn), {})[cause] = None
        found = {name_in(urn): "Pulumi did not say why" for urn in self._broken if _is_ours(urn)}
        return found | {name: "; ".join(causes) for name, causes in told.items()}

    @property
    def said(self) -> str:
        """The first error that is not about a single topic or ACL; empty when there was none."""
        return next((words for urn, words in self._errors if not _is_ours(urn)), "")


@dataclass(frozen=True)
class Expected:
    """What a preview may show.

    Attributes:
        created: names of the topics that the plan makes.
        changed: names of the topics that it lets grow or sets anew.
        acls: names of the ACLs that it grants, and of those that stand: to make one again changes nothing.
        revoked: names of the ACLs that the plan revokes.
    """

    created: Collection[str]
    changed: Collection[str]
    acls: Collection[str]
    revoked: Collection[str]

    def surprises(self, planned: Mapping[str, OpType]) -> dict[str, OpType]:
        """Return what Pulumi would do to topics and ACLs and no step says, by their names."""
        return {name: op for name, op in planned.items() if not self._allows(name, op)}

    def _allows(self, name: str, op: OpType) -> bool:
        if op in _HARMLESS:
            return True
        if op is OpType.CREATE:
            return name in self.created or name in self.acls
        if op is OpType.UPDATE:
            return name in self.changed
        return op is OpType.DELETE and name in self.revoked


def _cause(words: str) -> str:
    """Return what an error is about, without the frames that Pulumi's engine and its bridge to providers add.

    The bridge logs each error once more, before the engine tells it.
    """
    return "" if words.startswith("sdk-v2/") else _FRAMES.sub("", words)


def _is_ours(urn: str) -> bool:
    return urn.startswith("urn:") and type_in(urn) in (TOPIC_TYPE, ACL_TYPE)
