"""Values of settings as fields of a topology have them: lists, truth, times, references in place of secrets."""

from __future__ import annotations

import re

from reconciler.convert.settings import CONTRADICTS, WITHOUT_EQUAL, Setting
from reconciler.model.base.errors import DeclaredInputError
from reconciler.model.names import patterns
from reconciler.model.names.linear import BadPattern, NotLinear

_PROVIDED = re.compile(r"\$\{(?P<provider>[^:{}]+):(?P<rest>[^{}]*)\}")
# As `java.io.StreamTokenizer` reads them: either kind of quotes.
_JAAS = re.compile(r"""([\w.]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s;"']+)""")
_SECRET = re.compile(r"password|secret|\.key$|^key$|token$", re.IGNORECASE)
# Java's spelling of a group with a name; a look-behind begins alike.
_NAMED_GROUP = re.compile(r"\(\?<(?![=!])")
_NOT_A_NAME = re.compile(r"[^A-Z0-9]+")


def truth(setting: Setting) -> bool:
    """Return whether a setting is on.

    Raises:
        DeclaredInputError: AB141, it is neither `true` nor `false`.
    """
    # Guides explain a value behind it, as if a properties file had such comments.
    word = setting.value.lower().partition(" //")[0].strip()
    if word not in ("true", "false"):
        raise DeclaredInputError(setting.problem(CONTRADICTS, "expected true or false", "correct it"))
    return word == "true"


def is_on(setting: Setting | None, default: bool) -> bool:
    """Return whether a setting is on, or its default where it is not there; errors are those of `truth`."""
    return default if setting is None else truth(setting)


def whole(setting: Setting) -> int:
    """Return a whole number.

    Raises:
        DeclaredInputError: AB141, it is none.
    """
    try:
        return int(setting.value)
    except ValueError:
        raise DeclaredInputError(setting.problem(CONTRADICTS, "expected a whole number", "correct it")) from None


def listed(setting: Setting) -> list[str]:
    """Return the items of a list with commas."""
    return [item.strip() for item in setting.value.split(",") if item.strip()]


def expressions(setting: Setting, *, of_groups: bool = False, is_list: bool = True) -> list[str]:
    """Return names and regular expressions of Java as they are matched here; those of a list are parted by commas.

    Raises:
        DeclaredInputError: AB142, what an expression means cannot be had here.
    """
    found = [_NAMED_GROUP.sub("(?P<", item) for item in (listed(setting) if is_list else [setting.value])]
    for item in found:
        try:
            patterns.check(item, of_groups)
        except (BadPattern, NotLinear) as error:
            message = f"the expression {item} cannot be had here: {error}"
            remedy = "write it without that, or name the topics one by one"
            raise DeclaredInputError(setting.problem(WITHOUT_EQUAL, message, remedy)) from None
    return found


def reference(setting: Setting, text: str) -> str | None:
    """Return what a config provider's placeholder is as a reference; None where a text has none.

    Raises:
        DeclaredInputError: AB142, no reference stands for it.
    """
    found = _PROVIDED.search(text)
    if found is None:
        return None
    provider, rest = found["provider"], found["rest"]
    path, _, key = rest.rpartition(":")
    made = {
        "env": f"env:{rest.rpartition(':')[2]}",
        "file": f"file:{path}#{key}" if path else "",
        "directory": f"file:{path.rstrip('/')}/{key}" if path else "",
    }.get(provider)
    if not made or found[0] != text.strip():
        message = f"no reference stands for ${{{provider}:…}}" if not made else "a placeholder stands among other text"
        remedy = "put the value into a file or a variable of its own, and name that"
        raise DeclaredInputError(setting.problem(WITHOUT_EQUAL, message, remedy))
    return made


def plain_or_reference(setting: Setting, text: str | None = None) -> str:
    """Return a value that may be written in a topology, or the reference that stands for its placeholder."""
    given = setting.value if text is None else text
    return reference(setting, given) or given


def variable(*words: str) -> str:
    """Return the reference to a variable that is called after some words: `env:US_EAST_PASSWORD`."""
    name = _NOT_A_NAME.sub("_", "_".join(words).upper()).strip("_")
    return f"env:{name if not name[:1].isdigit() else f'A{name}'}"


def jaas(setting: Setting) -> tuple[str, dict[str, str]]:
    """Return the login module of a JAAS configuration, without its package, and its options."""
    words = setting.value.split()
    module = words[0].rpartition(".")[2] if words else ""
    options = {name: _unquoted(value) for name, value in _JAAS.findall(setting.value)}
    return module, options


def holds_secret(setting: Setting) -> bool:
    """Return whether a setting holds a secret itself, and not the name of the place where it is kept."""
    if setting.key.endswith("sasl.jaas.config"):
        _, options = jaas(setting)
        secrets = [text for name, text in options.items() if _SECRET.search(name)]
        # What is no JAAS configuration is either one reference as a whole, or not understood.
        return any(not _is_provided(text) for text in secrets) or ("=" not in setting.value and not _is_whole(setting))
    return bool(_SECRET.search(setting.key)) and bool(setting.value) and not _is_provided(setting.value)


def _is_whole(setting: Setting) -> bool:
    # Kerberos with a ticket cache has no options.
    return _is_provided(setting.value) or setting.value.rstrip(" ;").endswith("required")


def _is_provided(text: str) -> bool:
    return _PROVIDED.fullmatch(text.strip()) is not None


def _unquoted(value: str) -> str:
    if not value.startswith(('"', "'")):
        return value
    return re.sub(r"\\(.)", r"\1", value[1:-1])


def contradicting(one: Setting, other: Setting, remedy: str) -> DeclaredInputError:
    """Return the error that two settings contradict each other."""
    message = f"contradicts {other.title} at {other.where}"
    return DeclaredInputError(one.problem(CONTRADICTS, message, remedy))
