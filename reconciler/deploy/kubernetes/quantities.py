"""Quantities of Kubernetes: processors and bytes as numbers, and in words.

Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

from __future__ import annotations

import re
from fractions import Fraction

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<power>[+-]?\d{1,3}))?"
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_SHOWN = ("Gi", "Mi", "Ki")


def quantity(text: str) -> Fraction:
    """Return a quantity, such as `500m`, `2`, `1.5Gi` or `1e9`, as a number.

    Raises:
        ValueError: it is none.
    """
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        message = f"expected a quantity of Kubernetes, such as 500m or 4Gi; found {text[:40]}"
        raise ValueError(message)
    number, suffix = Fraction(match["number"].rstrip(".")), match["suffix"] or ""
    if suffix in _BINARY:
        return number * _power(1024, _BINARY[suffix])
    return number * _power(10, int(match["power"] or _DECIMAL[suffix]))


def _power(base: int, exponent: int) -> Fraction:
    return Fraction(base**exponent) if exponent >= 0 else Fraction(1, base**-exponent)


def in_words(amount: Fraction, *, is_bytes: bool) -> str:
    """Return an amount as Kubernetes writes it: bytes in the largest exact binary unit, others in 1 or 1/1000."""
    if is_bytes:
        for suffix in _SHOWN:
            tenths = amount * 10 / _power(1024, _BINARY[suffix])
            if amount and tenths.denominator == 1:
                whole, rest = divmod(int(tenths), 10)
                return f"{whole}.{rest}{suffix}" if rest else f"{whole}{suffix}"
    return f"{int(amount)}" if amount.denominator == 1 else f"{round(amount * 1000)}m"
