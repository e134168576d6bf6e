"""YAML's events become values with positions.

The reader feeds it. It stands in the place of a YAML loader, because a loader forgets duplicate keys, anchors and
positions, and this room has to report them. It works without recursion, so that no file can exhaust the stack.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
)

from reconciler.declare.documents.codes import DUPLICATE, SYNTAX
from reconciler.declare.documents.located import JsonPath, Located, Mark, TextPosition, Value

MAX_DEPTH = 32

# The core schema of YAML 1.2 (section 10.3.2), numbers as far as a topology needs them.
_CONSTANTS: dict[str, Value] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
# The value of a key that is written twice is built aside and dropped: this cannot be part of YAML text.
_ASIDE = "\0"

_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?([0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18})([eE][-+]?[0-9]{1,2})?")


def plain_value(text: str) -> Value:
    """Return what an unquoted scalar means."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


@dataclass
class _Frame:
    """A mapping or list that is still open, and the key that waits for its value."""

    container: dict[str, Value] | list[Value]
    path: JsonPath
    key: str | None = None


class TreeBuilder:
    """Builds one document's value from its events.

    Attributes:
        root: the document's value, once all events were taken.
        values: where each value starts.
        keys: where each mapping's keys start.
        texts: what stands in the file of each value that was read as something else than text.
        problems: what is not accepted.
        sound: whether `root` is what the file holds.
        stopped: whether the events that follow mean nothing any more.
    """

    def __init__(self, name: str) -> None:
        self.root: Value = None
        self.values: dict[JsonPath, Mark] = {(): Mark(1, 1)}
        self.keys: dict[JsonPath, Mark] = {}
        self.texts: dict[JsonPath, str] = {}
        self.problems: list[Located] = []
        self.sound = True
        self.stopped = False
        self._name = name
        self._open: list[_Frame] = []
        self._documents = 0

    def take(self, event: Event) -> None:
        """Take the next event of the stream."""
        mark = Mark(event.start_mark.line + 1, event.start_mark.column + 1)
        if isinstance(event, DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._stop(mark, "expected one document; found a second", "write each topology into a file of its own")
        elif isinstance(event, CollectionEndEvent):
            self._open.pop()
        elif isinstance(event, NodeEvent):
            self._node(event, mark)

    def _node(self, event: NodeEvent, mark: Mark) -> None:
        self._check_node(event, mark)
        frame = self._open[-1] if self._open else None
        if frame is not None and isinstance(frame.container, dict) and frame.key is None:
            if isinstance(event, ScalarEvent):
                self._key(frame, event, mark)
            else:
                self._stop(mark, "expected text as a key; found something else", "write the key as plain text")
            return
        path = self._place(frame)
        self.values[path] = mark
        if isinstance(event, CollectionStartEvent):
            container: dict[str, Value] | list[Value] = {} if isinstance(event, MappingStartEvent) else []
            self._attach(frame, container)
            self._open.append(_Frame(container, path))
            if len(self._open) > MAX_DEPTH:
                self._stop(mark, f"nested more than {MAX_DEPTH} deep", "a topology needs far fewer levels")
        elif isinstance(event, ScalarEvent):
            plain = event.implicit[0]
            if plain and not event.value:
                # A value that is left out stands, to YAML, where the next thing begins.
                self.values[path] = self.keys.get(path, mark)
            value = plain_value(event.value) if plain else event.value
            if not isinstance(value, str):
                self.texts[path] = event.value
            self._attach(frame, value)
        else:
            self._attach(frame, None)

    def _key(self, frame: _Frame, event: ScalarEvent, mark: Mark) -> None:
        frame.key = event.value
        if event.value == "<<" and event.implicit[0]:
            self._refuse(mark, "merge keys are not accepted", "write the fields out, or put shared ones under defaults")
        first = self.keys.setdefault((*frame.path, event.value), mark)
        if first is not mark:
            message = f"the key is written twice; first in line {first.line}"
            self._add(DUPLICATE, mark, message, "keep one of the two", frame.path)
            frame.key = f"{event.value}{_ASIDE}{mark.line}:{mark.column}"

    def _place(self, frame: _Frame | None) -> JsonPath:
        if frame is None:
            return ()
        if isinstance(frame.container, list):
            return (*frame.path, len(frame.container))
        return (*frame.path, str(frame.key))

    def _attach(self, frame: _Frame | None, value: Value) -> None:
        if frame is None:
            self.root = value
        elif isinstance(frame.container, list):
            frame.container.append(value)
        else:
            if _ASIDE not in str(frame.key):
                frame.container[str(frame.key)] = value
            frame.key = None

    def _check_node(self, event: NodeEvent, mark: Mark) -> None:
        """Refuse values that stand elsewhere than where they are read, and text that a terminal would not show.

        Names of anchors and tags are not repeated: unquoted, a secret can have their form.
        """
        remedy = "write the value out; put quotes around text that begins with "
        if isinstance(event, AliasEvent):
            self._refuse(mark, "YAML aliases are not accepted", remedy + "*")
        elif event.anchor is not None:
            self._refuse(mark, "YAML anchors are not accepted", remedy + "&")
        elif getattr(event, "ctag", None) is not None:
            self._refuse(mark, "YAML tags are not accepted", remedy + "!")
        if isinstance(event, ScalarEvent) and not event.value.isprintable():
            self._refuse(mark, "expected printable text on one line; found a control character", "remove it")

    def _refuse(self, mark: Mark, message: str, remedy: str) -> None:
        self.sound = False
        frame = self._open[-1] if self._open else None
        path = frame.path if frame and isinstance(frame.container, dict) and frame.key is None else self._place(frame)
        self._add(SYNTAX, mark, message, remedy, path)

    def _add(self, code: str, mark: Mark, message: str, remedy: str, path: JsonPath) -> None:
        visible = tuple(step.split(_ASIDE)[0] if isinstance(step, str) else step for step in path)
        self.problems.append(TextPosition(self._name, mark).problem(code, message, remedy, visible))

    def _stop(self, mark: Mark, message: str, remedy: str) -> None:
        self._refuse(mark, message, remedy)
        self.stopped = True
