"""Finds what resembles a reference and is none: nothing would be looked up, and the text would be taken as it is.

The loader calls `check` for each document, beside the schema. `env:NAME`, `file:/path` and `file:/path#key` are the
references of these files; users bring those of Kafka Connect (`${file:/path:key}`), of shells and of templates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from reconciler.declare.documents import codes, words
from reconciler.declare.documents.located import Document, JsonPath, Located, SourcePlace, TextPosition
from reconciler.declare.documents.violations import Finding
from reconciler.model.connection.references import EXPECTED, Reference

_PROVIDER = re.compile(r"\$\{(?:(?P<provider>[a-z]+):)?(?P<rest>[^}]+)\}")
_SHELL = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)|\$\(([A-Za-z_][A-Za-z0-9_]*)\)|%([A-Za-z_][A-Za-z0-9_]*)%")
_TEMPLATE = re.compile(r"\{\{.*\}\}|<%.*%>", re.DOTALL)
_OURS = re.compile(r"\s*(env|file)\s*:", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OF_VARIABLES = (None, "env", "strimzienv")
# The user name of all clients of Azure Event Hubs: the password is the connection string then.
_NO_VARIABLES = frozenset(("$ConnectionString",))


def check(document: Document, shaped: Sequence[Finding]) -> list[Finding]:
    """Return the schema's findings in a document, and values that resemble references and are none.

    For a value that resembles a reference the schema would report another form; values of unknown keys are not
    checked.

    Args:
        document: to check.
        shaped: the schema's findings.
    """
    unknown = {finding.located.position for finding in shaped if finding.broken is None}
    found = [one for one in _in(document.at()) if not unknown & set(_keys(document, one.broken or ()))]
    told = {one.broken for one in found}
    return [*found, *(one for one in shaped if one.broken is None or one.broken not in told)]


def _keys(document: Document, path: JsonPath) -> Iterator[TextPosition]:
    """Yield where the keys stand that lead to a value."""
    for length in range(1, len(path) + 1):
        yield TextPosition(document.name, document.at(*path[:length]).key_mark)


def _in(place: SourcePlace) -> Iterator[Finding]:
    match place.value:
        case dict() as fields:
            for key in fields:
                yield from _in(place / key)
        case list() as items:
            for index in range(len(items)):
                yield from _in(place / index)
        case str() as text:
            yield from _of_text(place, text)


def _of_text(place: SourcePlace, text: str) -> Iterator[Finding]:
    path = place.path
    if words.is_text_of_others(path) or text in _NO_VARIABLES:
        return
    takes = words.takes_reference(path)
    # Of addresses each item may be one.
    parts = [part.strip() for part in text.split(",")] if "bootstrap" in path else [text]
    if takes and all(_is_reference(part) for part in parts):
        return
    found = next((part for part in parts if _is_foreign(part)), None)
    if found is not None:
        yield Finding(_foreign(place, found, takes), path)
    elif _OURS.match(text) and not takes and not words.is_of_groups(path):
        # Groups may be called so.
        message = f"{words.found(text)} is a reference, and this field takes none: it would be taken as it is written"
        yield Finding(place.problem(codes.NO_REFERENCE, message, _no_reference(path)), path)
    elif takes and (broken := next((part for part in parts if _OURS.match(part) and _breaks(part)), None)):
        message = f"expected {EXPECTED}; found a reference that is not written so"
        yield Finding(place.problem(codes.BAD_REFERENCE, message, _mended(broken)), path)


def _is_reference(text: str) -> bool:
    try:
        Reference.parse(text)
    except ValueError:
        return False
    return True


def _breaks(text: str) -> bool:
    """Return whether what begins as a reference is none; `env:9092` and `file:9092` are hosts with ports."""
    return not _is_reference(text) and re.fullmatch(r"(env|file):[0-9]{1,5}", text) is None


def _is_foreign(text: str) -> bool:
    return bool(_PROVIDER.search(text) or _SHELL.fullmatch(text) or _TEMPLATE.search(text))


def _foreign(place: SourcePlace, text: str, takes: bool) -> Located:
    path = place.path
    secret = words.holds_secrets(path)
    said = "text in another form" if secret else words.found(text)
    if not takes:
        message = f"{said} resembles a reference, and this field takes none: it would be taken as it is written"
        return place.problem(codes.NO_REFERENCE, message, _no_reference(path, text))
    message = f"expected {EXPECTED} for what is looked up; found {said}, which would be taken as it is written"
    meant = _meant(text, secret)
    remedy = f"write {meant}" if meant else "write env:NAME for a variable of the environment, or file:/path#key"
    return place.problem(codes.NO_REFERENCE, message, remedy)


def _meant(text: str, secret: bool) -> str | None:
    """Return the reference that was meant by a whole text; None where it is ambiguous, or may be a secret itself."""
    if (found := _PROVIDER.fullmatch(text)) is not None:
        provider, rest = found["provider"], found["rest"]
        folder, _, key = rest.rpartition(":")
        if provider in _OF_VARIABLES and _VARIABLE.fullmatch(rest):
            return f"env:{rest}" if provider or not secret or rest.isupper() else None
        proposed = {"file": f"file:{folder}#{key}" if folder else f"file:{key}", "directory": f"file:{folder}/{key}"}
        return known if _is_reference(known := proposed.get(provider or "", "")) else None
    shell = _SHELL.fullmatch(text)
    return None if shell is None or secret else f"env:{shell[shell.lastindex or 0]}"


def _no_reference(path: JsonPath, text: str = "") -> str:
    if path[-1:] == ("to",) and "rules" in path and (found := _PROVIDER.search(text)):
        return f"for a group of `from` write \\g<{found['rest']}>"
    return "write the value itself; which fields take references is in docs/reference/topology.md#references"


def _mended(text: str) -> str:
    """Return how to correct a reference, without any text that may be a secret."""
    if not text.startswith(("env:", "file:")):
        return "write env: or file: in small letters, without blanks"
    if text.startswith("file:"):
        return (
            "write an absolute path without blanks: file:/run/secrets/value, or file:/etc/kafka/client.properties#key"
        )
    return "write the name of a variable: letters, digits and _, and no digit at its beginning"
