"""How messages describe what was found, what was meant, and what may come later.

Pure text; the checks of this room call it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from reconciler.declare.documents.located import JsonPath, Value
from reconciler.model.connection.security import REFERENCES

_SHOWN_LENGTH = 60
_ALIKE = 0.67
_SYNONYMS = {
    "source": "from",
    "target": "to",
    "whitelist": "include",
    "blacklist": "exclude",
    "sync-configs": "configs",
    "sync-acls": "acls",
}

_PLANNED_OF_FLOWS = frozenset(
    (
        *("where", "select"),
        "checkpoints",
    )
)
_PLANNED_KEYS: dict[str, frozenset[str]] = {
    "topology": _PLANNED_OF_FLOWS,
    "flow": _PLANNED_OF_FLOWS,
}

_OF_DEPLOYMENTS = (
    *("folder", "host", "kind", "metrics", "processes", "python", "serve"),
    *("kubernetes", "standalone", "systemd", "yarn"),
)
_WITH_CLIENTS = ("topology", "cluster", "flow")
_ROLES = ("consumer", "producer", "admin")
_OF_SECURITY = ("security.", "sasl.", "ssl.")

# Fields of `security` that take a value or a reference.
_LOOKED_UP = frozenset(("username", "token-endpoint", "client-id", "scope", "principal"))
# What is written for `security` where it is not known to be a mapping of its own.
_CREDENTIALS = REFERENCES | {
    *("username", "protocol", "mechanism", "oauth", "kerberos"),
    *("security.protocol", "sasl.mechanism", "sasl.jaas.config", "sasl.username", "sasl.password"),
    *("ssl.truststore.location", "ssl.truststore.password", "ssl.keystore.location", "ssl.keystore.password"),
    *("ssl.key.password",),
}
_CREDENTIAL = re.compile(
    r"^(sasl|ssl)[._-]|pass(word|wd|phrase)|secret|token|credential|api[._-]?key|jaas", re.IGNORECASE
)
_WITH_PASSWORD = re.compile(r":.*@", re.DOTALL)
_STORES = frozenset(("truststore", "truststore-password", "keystore", "keystore-password", "key-store", "trust-store"))


def kind(path: JsonPath) -> str:
    """Return what the mapping at `path` describes: topology, cluster, datacenter, flow, or its last key."""
    match path:
        case ():
            return "topology"
        case ("clusters", _):
            return "cluster"
        case ("datacenters", _):
            return "datacenter"
        case ("defaults",) | ("replication" | "flows", int()):
            return "flow"
        case _:
            return str(path[-1])


def is_planned_key(path: JsonPath, key: str) -> bool:
    """Return whether `key` will be accepted in the mapping at `path` by a later version."""
    return key in _PLANNED_KEYS.get(kind(path), ())


def is_java_store(path: JsonPath, key: str) -> bool:
    """Return whether `key` means a file that only Java reads."""
    return kind(path) == "security" and key in _STORES


def declared_elsewhere(path: JsonPath, key: str) -> str | None:
    """Return the field that is meant by `key` in the mapping at `path`; None where there is none."""
    if kind(path) in _WITH_CLIENTS and key in (*_ROLES, "overrides"):
        return "`clients` of a cluster, or of defaults"
    if kind(path) in _WITH_CLIENTS and key in _CREDENTIALS:
        return "`security` of a cluster"
    if kind(path) == "datacenter" and key in _OF_DEPLOYMENTS:
        return "`deploy` of the data centre"
    return "`security` of the cluster" if is_of_clients(path) and key.startswith(_OF_SECURITY) else None


def is_in_flow(path: JsonPath) -> bool:
    """Return whether the mapping at `path` has fields of flows, or is one of those."""
    return path[:1] in (("policy",), ("defaults",), ("replication",), ("flows",))


def is_of_clients(path: JsonPath) -> bool:
    """Return whether the mapping at `path` holds settings of clients."""
    return path[-2:-1] == ("clients",) and path[-1] in _ROLES


def is_reference(path: JsonPath) -> bool:
    """Return whether the value at `path` is a reference."""
    return holds_secrets(path) and path[-1] in REFERENCES


def takes_reference(path: JsonPath) -> bool:
    """Return whether the value at `path` may be a reference: what differs between environments may."""
    match path:
        case ("clusters", _, "bootstrap" | "cluster-id" | "rack") | ("clusters", _, "bootstrap", int()):
            return True
        case ("clusters", _, "replicator", "principal") | ("datacenters", _, "spark", "master"):
            return True
        case ("clusters", _, "security", "oauth", "token-provider-options" | "extensions", _):
            return True
        case ("clusters", _, "security", *_, str(key)):
            return key in REFERENCES or key in _LOOKED_UP
        case _:
            return False


def is_text_of_others(path: JsonPath) -> bool:
    """Return whether Spark or a policy interprets a text at `path`: they may have a form for references."""
    return path[-2:-1] == ("options",) or (path[:1] == ("datacenters",) and path[-2:-1] == ("conf",))


def is_of_groups(path: JsonPath) -> bool:
    """Return whether the value at `path` is a name of consumer groups, which may be any text."""
    return path[-3:-2] == ("groups",)


def holds_secrets(path: JsonPath) -> bool:
    """Return whether a value at `path` may be a secret, or a secret in the wrong place."""
    return "security" in path


def names_credentials(keys: Iterable[str]) -> bool:
    """Return whether one of a mapping's keys names a secret, so that any of it may be a part."""
    return any(key in _CREDENTIALS or _CREDENTIAL.search(key) for key in keys)


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that `word` was probably meant to be."""
    candidates = list(known)
    if _SYNONYMS.get(word) in candidates:
        return _SYNONYMS[word]
    plain = {candidate.lower(): candidate for candidate in candidates}
    near = get_close_matches(word.lower().replace("_", "-").replace(".", "-"), plain, n=1, cutoff=_ALIKE)
    return plain[near[0]] if near else None


def found(value: Value, *, secret: bool = False) -> str:
    """Describe a value; of what may be a secret only its kind."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false" if secret else str(value).lower()
        case int() | float():
            return "a number" if secret else str(value)
        case str():
            # As in user:password@host:9092.
            return "text" if secret or _WITH_PASSWORD.search(value) else f"'{_shortened(value)}'"
        case list():
            return f"a list of {len(value)}" if value else "an empty list"
        case dict():
            return f"a mapping of {len(value)}" if value else "an empty mapping"


def either(words: Sequence[str], conjunction: str = "or") -> str:
    """Return `a, b or c`."""
    return f" {conjunction} ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def example(path: JsonPath, value: object) -> str:
    """Return an example of the value at `path` as it would be written."""
    written = json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else value
    return f"{path[-1]}: {written}" if path and isinstance(path[-1], str) else written


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}…"
