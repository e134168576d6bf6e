"""What batches have left is there for the next ones, without the kernel's help."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

# As many batches as a task holds at once, taken and left again; new pages are counted from the second time on. The
# settings are those of a process, so it is another one. The list is there before them: one that grows between them is
# small enough to be kept aside when it is freed, and nothing below it is given back then.
_LAPS = """
import resource, sys
from reconciler.replicator.task import malloc

if sys.argv[1] == "kept":
    malloc.keep()
answer, size = memoryview(bytearray(16 * 2**20)), int(sys.argv[2])
batches = [b""] * (len(answer) // size)
for lap in range(9):
    if lap == 1:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for n in range(len(batches)):
        batches[n] = bytes(answer[n * size : (n + 1) * size])
    for n in range(len(batches)):
        batches[n] = b""
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) // 8)
"""


def _new_pages(how: str, size: int) -> int:
    """Return how many new pages 16 MiB of batches take each time."""
    command = [sys.executable, "-c", _LAPS, how, str(size)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library has other ways")
@pytest.mark.parametrize("size", [16 * 1024, 207 * 1024, 2**20])
def test_batches_take_the_pages_that_others_have_left(size: int) -> None:
    assert _new_pages("kept", size) < 100
    # Of the 4,096 pages of 4 KiB that they fill: this can fail.
    assert _new_pages("given back", size) > 1000
