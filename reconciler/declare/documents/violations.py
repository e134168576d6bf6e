"""Describes violations of the schema for users: what was expected, what was found, what to do.

`shape` calls `translate`. Titles and examples are the schema's own, so that the editor and the command line agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

from reconciler.declare.documents import codes, mirrormaker, scalars, words
from reconciler.declare.documents.located import JsonPath, Located, SourcePlace, Value
from reconciler.declare.documents.resources import schema_text
from reconciler.declare.documents.settings import PATTERN_KINDS
from reconciler.model.policies.types import TYPES

_KINDS_SAID = f"{', '.join(PATTERN_KINDS)}, or from and to"
# Of PKCS12 files, to which keytool turns those of type JKS.
_CONVERT = (
    "convert it: keytool -importkeystore -srckeystore STORE -destkeystore store.p12 -deststoretype PKCS12, then "
    "openssl pkcs12 -in store.p12 with -nokeys -cacerts -out ca.pem, -nokeys -clcerts -out certificate.pem, "
    "-nocerts -out key.pem"
)
# Called as fields of ours, which another remedy is for where they stand in the wrong place.
_SAME_NAMES = frozenset(("clusters", "enabled", "groups", "name", "topics"))
_POLICIES = {policy_type.mirrormaker_class: kind for kind, policy_type in TYPES.items()}
NEEDED = frozenset((*PATTERN_KINDS, "from", "to", "name"))
"""The field that lists the flows."""

_ALONE = {
    "name": "remove it: the flows of a pattern are called <from>-<to>",
    "failed-over": "write it into the entry of one flow, under flows",
}
_TYPES = {"object": "a mapping", "array": "a list", "integer": "a whole number", "boolean": "true or false"}


class Finding(NamedTuple):
    """One violation.

    Attributes:
        located: the problem and its position.
        broken: the path of the value that cannot be used because of it; None where all that is known can be.
        doubtful: the path of a value that is not known because of it, and without which the rest is still right.
    """

    located: Located
    broken: JsonPath | None
    doubtful: JsonPath | None = None


class Violation(NamedTuple):
    """What jsonschema reports.

    Attributes:
        place: the value that violates.
        rule: the keyword of the schema that it violates.
        schema: the schema that has the keyword.
        alternatives: of oneOf, the violations of each alternative.
    """

    place: SourcePlace
    rule: str
    schema: dict[str, Any]
    alternatives: dict[object, list[Violation]]

    @property
    def known(self) -> list[str]:
        """The keys that a mapping may have."""
        return list(self.schema.get("properties", {}))

    @property
    def keys(self) -> list[str]:
        """The keys that the value has; none where it is no mapping, which is a violation of its own."""
        return list(self.place.value) if isinstance(self.place.value, dict) else []


def translate(violation: Violation) -> Iterator[Finding]:
    """Yield what a violation means; one may be several findings, and several may be the same one."""
    return _TRANSLATORS.get(violation.rule, _wrong_value)(violation)


def _finding(place: SourcePlace, code: str, message: str, remedy: str) -> Finding:
    return Finding(place.problem(code, message, remedy), place.path)


def _at_key(place: SourcePlace, code: str, message: str, remedy: str) -> Finding:
    return Finding(place.problem(code, message, remedy, at_key=True), None)


def _unknown_keys(violation: Violation) -> Iterator[Finding]:
    patterns = violation.schema.get("patternProperties", {})
    for key in violation.keys:
        if key not in violation.known and not any(re.search(pattern, key) for pattern in patterns):
            yield _unknown_key(violation, key)


def _unknown_key(violation: Violation, key: str) -> Finding:
    parent, known = violation.place, violation.known
    place = parent / key
    is_hidden = _may_be_secret(place)
    if not known and is_hidden:
        message = "expected another name; found one that is not shown: it may be part of a secret"
        remedy = "correct the name, or put quotes around a value with a comma"
        return Finding(place.problem(codes.WRONG_VALUE, message, remedy, at_key=True, hide_key=True), place.path)
    if not known:
        names = violation.schema.get("propertyNames", {})
        expected = names.get("title", "a name of letters, digits, _ and -")
        message = f"expected {expected}; found '{key}'"
        located = place.problem(codes.WRONG_VALUE, message, "rename it here and where it is used", at_key=True)
        # The schema does not check a value behind a name that it does not take.
        return Finding(located, place.path)
    if words.is_planned_key(parent.path, key):
        return _at_key(place, codes.NOT_YET, f"{key} is planned and not accepted yet", "remove it")
    if words.is_java_store(parent.path, key):
        message = f"expected PEM files under ca, certificate and key; found {key}, which only Java reads"
        return _at_key(place, codes.UNKNOWN_KEY, message, _CONVERT)
    if (found := _known_elsewhere(place, key)) is not None:
        return found
    meant = words.closest(key, known)
    if is_hidden:
        # In braces, an unquoted value with a comma ends as a key: it may be half of a password.
        message = "found another key, not shown: it may be part of a secret"
        message = f"unknown field: {message}" if meant else f"expected one of {words.either(known)}; {message}"
        remedy = f"did you mean {meant}?" if meant else "remove it, or put quotes around a value with a comma"
        located = place.problem(codes.UNKNOWN_KEY, message, remedy, at_key=True, hide_key=True)
        return _instead_of(located, parent, meant)
    # A pattern without its kind: the misspelt key is probably it.
    kindless = "fan-out" in known and not _kinds(violation.keys)
    expected = _KINDS_SAID if kindless else words.either(known)
    message = f"unknown field {key}" if meant and not kindless else f"expected one of {expected}; found {key}"
    if meant is None and not parent.path and key in _fields_of_flows():
        remedy = f"{key} is a field of flows: put it under defaults, a pattern or an entry of flows"
    else:
        remedy = f"did you mean {meant}?" if meant else "remove it, or correct its name"
    return _instead_of(place.problem(codes.UNKNOWN_KEY, message, remedy, at_key=True), parent, meant)


def _instead_of(located: Located, parent: SourcePlace, meant: str | None) -> Finding:
    """Return the finding of a field that is written wrongly.

    What was meant is as good as missing. Which clusters a flow joins must be known for any other check of
    it; without any other field the flow is there, and what rests on the field is in doubt.
    """
    path = (*parent.path, meant) if meant else None
    is_needed = meant in NEEDED or not words.is_in_flow(parent.path)
    return Finding(located, path if is_needed else None, None if is_needed else path)


def _known_elsewhere(place: SourcePlace, key: str) -> Finding | None:
    """Return the problem of a key that is known, and has another name here or no meaning."""
    path = place.path[:-1]
    if (field := words.declared_elsewhere(path, key)) is None or field.startswith("`security`"):
        found = None if key in _SAME_NAMES else mirrormaker.answer(key)
        if found is None and not words.is_of_clients(path) and (of_clients := _setting_of_clients(key)):
            field = f"`{of_clients}` of the cluster"
        elif found is not None and not found.fields:
            message = f"{key} has no field here: {found.why}"
            return _at_key(place, codes.UNKNOWN_KEY, message, "remove it")
        elif found is not None:
            field = mirrormaker.said(found.fields)
            field += f" ({found.why})" if found.why else ""
    if field is None:
        return None
    kind = _POLICIES.get(str(place.value).rpartition(".")[2]) if key.endswith("replication.policy.class") else None
    remedy = f"write policy: {{type: {kind}}} in its place" if kind else f"remove it, and use {field}"
    return _at_key(place, codes.UNKNOWN_KEY, f"{key} is declared elsewhere: by {field}", remedy)


def _setting_of_clients(key: str) -> str | None:
    """Return where a setting of clients stands that is written elsewhere: `clients.consumer.fetch.max.bytes`."""
    definitions = json.loads(schema_text())["definitions"]
    for role in ("consumer", "producer", "admin"):
        before, inside, name = key.rpartition(f"{role}.")
        if name in definitions[role]["properties"] and (inside or not before):
            return f"clients.{role}.{name}"
    return None


def _may_be_secret(place: SourcePlace) -> bool:
    """Return whether a value, or its key, may be a secret or a part of one: under `security`, or beside credentials."""
    # Names of clusters and data centres do not describe their values.
    named = 2 if place.path[:1] in (("clusters",), ("datacenters",)) else 0
    beside = SourcePlace(place.document, place.path[:-1]).value if len(place.path) > named else None
    steps = [step for step in place.path[named:-1] if isinstance(step, str)]
    keys = [*steps, *(beside if isinstance(beside, dict) else ())]
    return words.holds_secrets(place.path) or words.names_credentials(keys)


def _found(place: SourcePlace) -> str:
    """Describe a value; of what may be a secret only its kind, as of addresses with a user in them."""
    value = place.value
    is_address = "bootstrap" in place.path and isinstance(value, str) and "@" in value
    is_secret = is_address or _may_be_secret(place)
    # As it stands there: 1e3 is not shown as 1000.0.
    return (
        place.text
        if place.text and isinstance(value, int | float) and not is_secret
        else words.found(value, secret=is_secret)
    )


@cache
def _fields_of_flows() -> frozenset[str]:
    return frozenset(json.loads(schema_text())["definitions"]["flow"]["properties"])


def _kinds(keys: Sequence[str]) -> list[str]:
    ends = " and ".join(end for end in ("from", "to") if end in keys)
    return [kind for kind in PATTERN_KINDS if kind in keys] + ([ends] if ends else [])


def _one_of(violation: Violation) -> Iterator[Finding]:
    if words.kind(violation.place.path) == "flow":
        return _kind_of_pattern(violation.place)
    return _alternatives(violation)


def _kind_of_pattern(place: SourcePlace) -> Iterator[Finding]:
    """Yield the kinds of a pattern, where it must have one; that it is no mapping is another finding."""
    if not isinstance(place.value, dict):
        return
    keys = list(place.value)
    kinds = _kinds(keys)
    if kinds in (["from"], ["to"]):
        other = "to" if kinds == ["from"] else "from"
        yield _finding(place, codes.MISSING, f"{other} is missing beside {kinds[0]}", f"add {other}: and an alias")
    elif kinds:
        message = f"expected one of {_KINDS_SAID}; found {words.either(kinds, 'and')}"
        yield _finding(place, codes.WRONG_VALUE, message, "write one pattern for each")
    elif any(words.closest(key, (*PATTERN_KINDS, "from", "to")) for key in keys):
        # The misspelt key is reported by itself, and names the kinds.
        return
    else:
        said = "other keys" if words.names_credentials(keys) else words.either(keys, "and") if keys else "nothing"
        message = f"expected one of {_KINDS_SAID}; found {said}"
        yield _finding(place, codes.MISSING, message, 'for example: active-active: ["us-east", "eu-west"]')


def _alternatives(violation: Violation) -> Iterator[Finding]:
    """Translate the violations of the alternative that was meant, by the value's type."""
    path = violation.place.path
    for nested in violation.alternatives.values():
        if not any(other.rule == "type" and other.place.path == path for other in nested):
            for other in nested:
                yield from translate(other)
            return
    message = f"expected a list or text; found {_found(violation.place)}"
    yield _finding(violation.place, codes.WRONG_VALUE, message, _example(violation))


def _repeated(violation: Violation) -> Iterator[Finding]:
    items = cast("list[Value]", violation.place.value)
    for index, item in enumerate(items):
        first = items.index(item)
        if first < index:
            message = (
                f"expected each once; found {_found(violation.place / index)} as item {first} and again as item {index}"
            )
            yield _finding(violation.place / index, codes.DUPLICATE, message, "remove one of them")


def _of_one_flow_alone(violation: Violation) -> Iterator[Finding]:
    if not {"from", "to"} & set(violation.keys):
        for key in violation.schema["dependencies"].keys() & violation.keys:
            place = violation.place / key
            located = place.problem(codes.WRONG_VALUE, f"{key} goes with from and to alone", _ALONE[key], at_key=True)
            yield Finding(located, place.path)


def _missing(violation: Violation) -> Iterator[Finding]:
    """Yield the missing keys, all together; one that is merely misspelt is reported as an unknown key."""
    required: list[str] = violation.schema["required"]
    misspelt = {words.closest(key, required) for key in violation.keys if key not in required}
    missing = [key for key in required if key not in violation.keys and key not in misspelt]
    if missing == ["version"]:
        yield Finding(violation.place.problem(codes.VERSION, "version is missing", "add version: 1"), None)
    elif missing:
        said = words.either(missing, "and")
        message = f"{said} {'are' if len(missing) > 1 else 'is'} missing"
        yield _finding(violation.place, codes.MISSING, message, f"add {said}")


def _not_one_of(violation: Violation) -> Iterator[Finding]:
    place, value, allowed = violation.place, violation.place.value, violation.schema["enum"]
    remedy = f"use {words.either(allowed)}"
    meant = words.closest(value, allowed) if isinstance(value, str) else None
    message = f"expected {words.either(allowed)}; found {_found(place)}"
    yield _finding(place, codes.WRONG_VALUE, message, f"did you mean {meant}?" if meant else remedy)


def _wrong_value(violation: Violation) -> Iterator[Finding]:
    """Translate what concerns one value alone: its type, form, size or number of items."""
    if violation.rule == "not" and not isinstance(violation.place.value, int | float):
        # What it is instead of a number is reported by the check of its type.
        return
    path, schema = violation.place.path, violation.schema
    expected = str(schema["title"])
    code = codes.WRONG_VALUE
    match violation.rule:
        case "type" if isinstance(schema["type"], str):
            expected = _TYPES.get(schema["type"], expected)
        case "const":
            code = codes.VERSION
        case "minItems" if schema["minItems"] == 1:
            code = codes.EMPTY_TOPICS if path[-2:] == ("topics", "include") else code
            expected += ", not empty"
        case "minimum" | "maximum" if schema["minimum"] < schema["maximum"]:
            kind = "number" if schema["type"] == "number" else "whole number"
            expected = f"a {kind} from {schema['minimum']} to {schema['maximum']}"
        case "maxLength":
            expected = f"at most {schema['maxLength']} characters"
    if words.is_reference(path):
        code = codes.BAD_REFERENCE
    said = _found(violation.place)
    yield _finding(violation.place, code, f"expected {expected}; found {said}", _remedy(violation))


def _remedy(violation: Violation) -> str:
    retyped = None
    if violation.rule == "type":
        retyped = scalars.retyped(violation.place, violation.schema, _may_be_secret(violation.place))
    return retyped or _example(violation)


def _example(violation: Violation) -> str:
    if violation.rule == "minItems" and violation.place.path[-2:] == ("topics", "include"):
        return "name topics, or leave include out to take all; enabled: false stops a flow"
    if violation.place.path[-1:] == ("quota",):
        return "for example: quota: 50MB/s; leave it out for no limit, enabled: false stops a flow"
    if violation.place.path[-3:-1] == ("configs", "set"):
        return _setting(str(violation.place.path[-1]), violation.place.value)
    if violation.rule == "const":
        return f"set version: {violation.schema['const']}, the one that this release reads"
    return f"for example: {words.example(violation.place.path, violation.schema['examples'][0])}"


def _setting(key: str, value: Value) -> str:
    """Return how a setting of topics would be written, of which Kafka takes one value and no list or mapping."""
    if isinstance(value, list) and value and all(isinstance(item, str | int | float) for item in value):
        return f"write {key}: {','.join(map(str, value))}"
    if key.endswith((".ms", "bytes")):
        return f"for example: {key}: {604800000 if key.endswith('.ms') else 1048576}"
    return (
        f"for example: {key}: compact,delete"
        if key == "cleanup.policy"
        else f"write one value of {key}, or leave it out"
    )


_TRANSLATORS: dict[str, Callable[[Violation], Iterator[Finding]]] = {
    "additionalProperties": _unknown_keys,
    "oneOf": _one_of,
    "uniqueItems": _repeated,
    "dependencies": _of_one_flow_alone,
    "required": _missing,
    "enum": _not_one_of,
}
