"""How many slots the tasks of a run have where Spark runs on this machine."""

from __future__ import annotations

# So many tasks have a slot each; of more so many for each processor, which they share.
_FEW, _FOR_EACH_PROCESSOR = 8, 4


def local_slots(tasks: int, processors: float) -> int:
    """Return how many slots some tasks have.

    Args:
        tasks: how many.
        processors: that they may use, perhaps a part of one.
    """
    return min(tasks, max(_FEW, int(_FOR_EACH_PROCESSOR * processors)))
