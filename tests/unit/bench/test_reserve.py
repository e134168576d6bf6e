"""Memory that is kept until a copy wants it: what the process holds shrinks as the copy grows."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from bench.instruments.reserve import Reserve

MIB = 2**20
COPY = 400 * MIB


def held() -> int:
    """Bytes of the memory of this process that stand behind no file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    pytest.fail("the kernel tells no RssAnon")


def test_memory_is_given_back_as_the_copy_grows() -> None:
    before = held()
    with Reserve(COPY) as reserve:
        assert reserve.left == 600 * MIB
        reserve.follow(0)
        assert held() - before > 590 * MIB
        reserve.follow(1)
        assert reserve.left == 216 * MIB
        assert 210 * MIB < held() - before < 230 * MIB
        reserve.follow(100 * MIB)
        assert reserve.left == 66 * MIB
        # What a look sees twice takes nothing more, and behind the end there is nothing.
        reserve.follow(100 * MIB)
        assert reserve.left == 66 * MIB
        reserve.follow(COPY)
        reserve.follow(2 * COPY)
        assert reserve.left == 0
        assert held() - before < 10 * MIB
    assert held() - before < 10 * MIB


def test_what_is_left_goes_with_the_block() -> None:
    before = held()
    with pytest.raises(ZeroDivisionError), Reserve(COPY):
        assert held() - before > 590 * MIB
        _ = 1 / 0
    assert held() - before < 10 * MIB


def test_others_keep_their_share_of_a_small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    class Small:
        available = 100 * MIB

    monkeypatch.setattr(psutil, "virtual_memory", Small)
    with Reserve(COPY) as reserve:
        assert reserve.left == 60 * MIB
