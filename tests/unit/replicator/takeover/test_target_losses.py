"""Takeovers of copies whose target has lost what stood there; both clusters are made up."""

from __future__ import annotations

import uuid
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.model.offsets.runs import CopyRecord, Handed, Run, Runs
from reconciler.replicator.copy.agreement import Disagreement, Logs
from reconciler.replicator.copy.log_tail import LogTail
from reconciler.replicator.partition.shares import Place
from reconciler.replicator.takeover.identical import Takeover
from reconciler.wire import TopicInfo

SOURCE, TARGET = uuid.UUID(int=1), uuid.UUID(int=2)
PLACE = Place("orders", 0, "east.orders", "identical")


class Memory:
    """What is remembered of the only copy."""

    def __init__(self, record: CopyRecord) -> None:
        self.record = record
        self.puts: list[CopyRecord] = []

    def get(self, _place: Place) -> CopyRecord:
        return self.record

    async def put(self, _place: Place, record: CopyRecord) -> None:
        self.puts.append(record)


def record_of(*runs: Run, **more: Any) -> CopyRecord:
    return CopyRecord(str(SOURCE), str(TARGET), runs=Runs(runs), **more)


def logs_of(record: CopyRecord, end: int) -> Logs:
    source, target = TopicInfo("orders", SOURCE, 0, {}), TopicInfo("east.orders", TARGET, 0, {})
    return Logs(PLACE, source, target, 0, 0, end, LogTail(None, end), record)


def takeover_of(**attributes: object) -> Any:
    made: Any = object.__new__(Takeover)
    for name, value in attributes.items():
        setattr(made, f"_{name}", value)
    return made


@pytest.mark.parametrize("before", [{"origin": 100}, {"handed": Handed(100, ())}])
def test_what_the_target_lost_of_others_is_nothing_that_could_be_copied_again(before: dict[str, Any]) -> None:
    opening = takeover_of(flow=SimpleNamespace(on_recreate="restart"))
    channel = SimpleNamespace(behind_since=None)
    with pytest.raises(Disagreement, match="ends at 90, before 100") as told:
        opening._place_to_go_on(channel, logs_of(record_of(Run(0, 100), **before), 90), 1_000).send(None)
    assert told.value.verdict[1].code == "AB225"


@pytest.mark.parametrize(("end", "puts"), [(40, 1), (70, 0)])
def test_runs_that_the_target_has_lost_are_forgotten(end: int, puts: int) -> None:
    stored = record_of(Run(50, 1), Run(60, 0))
    kept = record_of(*(run for run in stored.runs.runs if run.target <= end))
    memory = Memory(stored)
    with pytest.raises(StopIteration):
        takeover_of(memory=memory)._remember(logs_of(kept, end), Run(end, 0)).send(None)
    assert memory.puts == [kept] * puts
