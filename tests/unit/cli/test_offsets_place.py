"""`offsets write --to`: what a place means for logs that are there, are not, or have nobody to tell."""

from __future__ import annotations

import re
from typing import cast

import pytest
import typer

from reconciler.checkpoints.groups.groups import Groups
from reconciler.cli.offsets.write import _place
from reconciler.model.base.errors import EnvironmentFault, Problem
from reconciler.model.declared.cluster import Cluster
from reconciler.model.offsets.committed import Log, LogBounds


class Fake:
    """A cluster whose topic `orders` has three partitions; those with bounds have a leader."""

    cluster = Cluster("east", ("127.0.0.1:1",))
    partitions = {"orders": 3}  # noqa: RUF012
    without_leader = Groups.without_leader

    def __init__(self, bounds: dict[Log, LogBounds], times: dict[Log, int | None]) -> None:
        self._bounds = bounds
        self._times = times

    def bounds(self, _logs: object) -> dict[Log, LogBounds]:
        return self._bounds

    def at_time(self, _logs: object, _milliseconds: int) -> dict[Log, int | None]:
        return self._times


LOGS: list[Log] = [("orders", 0), ("orders", 1), ("orders", 2)]
ALL = dict.fromkeys(LOGS, LogBounds(5, 90, 100))
TIMES: dict[Log, int | None] = {LOGS[0]: 40, LOGS[1]: None, LOGS[2]: 41}


def asked(to: str, fake: Fake, logs: list[Log]) -> list[int]:
    return [one.offset for one in _place(to).asked(cast("Groups", fake), "billing", logs, "here")]


def refused(to: str, fake: Fake) -> list[Problem]:
    with pytest.raises(EnvironmentFault) as fault:
        asked(to, fake, LOGS)
    return list(fault.value.problems)


def test_places_are_those_of_each_log() -> None:
    fake = Fake(ALL, TIMES)
    assert asked("earliest", fake, LOGS) == [5, 5, 5]
    # Readers of what is committed would not get further.
    assert asked("latest", fake, LOGS) == [90, 90, 90]
    assert asked("timestamp:2026-01-01", fake, LOGS) == [40, 90, 41]
    assert asked("17", fake, LOGS) == [17, 17, 17]


@pytest.mark.parametrize("to", ["earliest", "latest", "timestamp:2026-01-01"])
def test_a_partition_without_leader_is_not_taken_for_one_that_stands_at_0(to: str) -> None:
    (problem,) = refused(to, Fake({log: ALL[log] for log in LOGS[1:]}, TIMES))
    assert (problem.code, problem.where.endswith("topic orders, partition 0")) == ("AB630", True)


def test_one_that_loses_its_leader_before_its_time_is_asked_for_is_not_taken_for_one_of_old_records() -> None:
    (problem,) = refused("timestamp:2026-01-01", Fake(ALL, {log: TIMES[log] for log in LOGS[:2]}))
    assert (problem.code, problem.where.endswith("topic orders, partition 2")) == ("AB630", True)


def test_what_is_not_there_stands_at_0_to_be_told_so() -> None:
    assert asked("latest", Fake({}, {}), [("gone", 0), ("orders", 7)]) == [0, 0]


@pytest.mark.parametrize(
    "time", ["1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.998", "1970-01-01T00:59:59.997+01:00", "0001-01-02"]
)
def test_no_time_is_one_of_the_numbers_that_mean_an_end_to_kafka(time: str) -> None:
    with pytest.raises(typer.BadParameter, match=f"expected a time since 1970; found timestamp:{re.escape(time)}"):
        _place(f"timestamp:{time}")


def test_the_first_time_of_all_is_one() -> None:
    assert _place("timestamp:1970-01-01T00:00:00Z").time == 0
