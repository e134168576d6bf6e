"""CRC-32C, the checksum of record batches; recomputes it after a change at the beginning without reading the rest.

CRC is linear: the effect of a change at the beginning depends on that change and on the number of bytes behind it, not
on their values. Pure.
"""

from __future__ import annotations

from array import array
from functools import cache

from crc32c import crc32c

__all__ = ["crc32c", "replaced_prefix"]

# RFC 3720's polynomial, its bits in reverse.
_POLYNOMIAL = 0x82F63B78
_BITS = 32
_BYTE = 0xFF
_ONES = 0xFFFFFFFF
_PAGE_POWER = 12
_PAGE = 2**_PAGE_POWER
_ZEROS = memoryview(bytes(_PAGE))

# One table of 256 values for each byte of a difference, the lowest byte first. Arrays, not lists: they are read once a
# batch, between megabytes of payload, and a list's numbers are scattered over the heap, which costs cache misses.
_Tables = tuple["array[int]", ...]


def replaced_prefix(crc: int, before: bytes, after: bytes, behind: int) -> int:
    """Return the checksum of bytes whose beginning is replaced.

    If `crc` is wrong for the old bytes, the result is wrong for the new ones.

    Args:
        crc: the checksum of `before` and the bytes behind it.
        before: the beginning that is replaced.
        after: its replacement, of the same length.
        behind: number of bytes behind it.
    """
    changed, pages = crc32c(before) ^ crc32c(after), behind // _PAGE
    if part := behind % _PAGE:
        # For less than a page the library is faster than the tables. It inverts all bits before and after.
        changed = crc32c(_ZEROS[:part], changed ^ _ONES) ^ _ONES
    power = _PAGE_POWER
    while pages:
        if pages & 1:
            lowest, second, third, highest = _shift(power)
            changed = (
                lowest[changed & _BYTE]
                ^ second[changed >> 8 & _BYTE]
                ^ third[changed >> 16 & _BYTE]
                ^ highest[changed >> 24]
            )
        pages >>= 1
        power += 1
    return crc ^ changed


@cache
def _shift(power: int) -> _Tables:
    """Return the tables that carry a difference over 2 ** `power` bytes."""
    if power:
        columns = [_through(_shift(power - 1), _through(_shift(power - 1), 1 << bit)) for bit in range(_BITS)]
    else:
        columns = [_one_byte(1 << bit) for bit in range(_BITS)]
    return tuple(_sums(columns[at : at + 8]) for at in range(0, _BITS, 8))


def _through(tables: _Tables, difference: int) -> int:
    found = 0
    for number, table in enumerate(tables):
        found ^= table[difference >> 8 * number & _BYTE]
    return found


def _one_byte(difference: int) -> int:
    for _ in range(8):
        difference = difference >> 1 ^ (_POLYNOMIAL if difference & 1 else 0)
    return difference


def _sums(columns: list[int]) -> array[int]:
    """Return, for each value of a byte, the XOR of the columns that its bits select."""
    sums = [0]
    for column in columns:
        sums += [one ^ column for one in sums]
    return array("I", sums)
