"""End processes together with all that they have started: what is left behind starves the tests that follow."""

from __future__ import annotations

import contextlib

import psutil


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
