"""What was probably meant by the value of a topic's setting that no broker takes.

Kafka's settings are plain numbers of milliseconds and bytes, `true` and `false`, and lists with commas. Other tools
take units, and so do most other fields of a topology file.
"""

from __future__ import annotations

import re

_MS = {"ms": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_MS |= {"second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000}
_BYTES = {"b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4}
_BYTES |= {"kib": 1024, "mib": 1024**2, "gib": 1024**3, "tib": 1024**4}
_FLAGS = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_WITH_UNIT = re.compile(r"([0-9]{1,15}) ?([A-Za-z]{1,7})")
# Thousands apart, as YAML 1.1, programs and users write them.
_GROUPED = re.compile(r"[0-9]{1,3}([_,' ][0-9]{3}){1,6}")
_LISTS = frozenset({"cleanup.policy"})
_WORD = re.compile(r"[a-z]+")


def meant(key: str, value: str) -> str | None:
    """Return the value as Kafka writes it; None where it is ambiguous.

    Args:
        key: the setting.
        value: what is written.
    """
    text = value.strip()
    if key in _LISTS:
        words = ",".join(_WORD.findall(text.lower()))
        return words if words and words != value else None
    if _GROUPED.fullmatch(text):
        return re.sub(r"[^0-9]", "", text)
    if found := _WITH_UNIT.fullmatch(text):
        units = _MS if key.endswith(".ms") else _BYTES if key.endswith("bytes") else {}
        unit = found[2].lower()
        factor = units.get(unit) or units.get(unit.removesuffix("s"))
        return None if factor is None else str(int(found[1]) * factor)
    return _FLAGS.get(text.lower())
