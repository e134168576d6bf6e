"""CRC-32C, the checksum of record batches; also that of bytes of which only the beginning changes, without the rest.

A checksum is linear: what a change at the beginning does to it depends on that change and on how many bytes follow,
not on which. Pure.
"""

from __future__ import annotations

from array import array
from functools import cache

from crc32c import crc32c

__all__ = ["crc32c", "instead"]

# RFC 3720's polynomial, its bits in reverse.
_POLYNOMIAL = 0x82F63B78
_BITS = 32
_BYTE = 0xFF
_ONES = 0xFFFFFFFF
_PAGE_POWER = 12
_PAGE = 2**_PAGE_POWER
_ZEROS = memoryview(bytes(_PAGE))

# For the lowest byte of a difference first, for each of its values. Not a list: looked up once for each batch, while
# megabytes pass through the processor's caches, its numbers would be somewhere else each.
_Tables = tuple["array[int]", ...]


def instead(crc: int, before: bytes, after: bytes, behind: int) -> int:
    """Return the checksum of bytes whose beginning is replaced.

    A checksum that did not fit the old bytes does not fit the new ones either.

    Args:
        crc: the checksum of `before` and what stands behind it.
        before: how the bytes begin.
        after: what stands there instead, as long.
        behind: how many bytes stand behind it.
    """
    changed, pages = crc32c(before) ^ crc32c(after), behind // _PAGE
    if part := behind % _PAGE:
        # The library reads so few zeros sooner than the tables are looked up; it turns all bits before and after.
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
    """Return what 2 ** `power` more bytes make of each byte of a difference."""
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
    """Return the sum of the columns that each byte's bits choose."""
    sums = [0]
    for column in columns:
        sums += [one ^ column for one in sums]
    return array("I", sums)
