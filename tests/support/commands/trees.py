"""Processes and all that they have started. What a test leaves behind starves the tests that follow."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import psutil


def below(process: int, is_meant: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    """Return the descendants of a process that are meant; some that were there just now may have ended.

    Args:
        process: its id.
        is_meant: asks one of them anything.
    """
    found = []
    for one in psutil.Process(process).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if is_meant(one):
                found.append(one)
    return found


def kill_tree(process: int) -> None:
    """Kill a process and its descendants, in whatever sessions they are; those that have ended already are no error.

    Args:
        process: its id.
    """
    with contextlib.suppress(psutil.NoSuchProcess):
        whole = psutil.Process(process)
        # A parent that still runs could start further ones: it goes first, and its children are known by then.
        for one in [whole, *whole.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
