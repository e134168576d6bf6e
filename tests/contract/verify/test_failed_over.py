"""`verify` while a flow is failed over: people write to its copies, and that is no difference; no Spark."""

from __future__ import annotations

import pytest

from reconciler.model.tasks.spec import FlowSpec
from reconciler.verify.survey import Found, Survey, VerifyFilter
from tests.contract.verify.test_work import compared
from tests.support.clusters.kafka import delete_records
from tests.support.commands.failing_over import MODES, MakePair, Pair, ends_of, write
from tests.support.replicator.copying import fill


def looked_at(pair: Pair) -> tuple[FlowSpec, Found]:
    topology = pair.topology
    spec = FlowSpec.compile(topology, topology.flows[0], "verify")
    warnings: list[object] = []
    found = Survey(spec, VerifyFilter((pair.topic,)), warnings.append).look()
    assert (warnings, found.without, found.unreadable) == ([], (), ())
    return spec, found


@pytest.mark.parametrize("offsets", MODES)
def test_a_flow_that_is_failed_over_is_compared_up_to_its_cuts(make: MakePair, offsets: str) -> None:
    pair = make(offsets)
    assert looked_at(pair)[1].notices == ()
    over = pair.over("--yes")
    assert over.code == 0, over
    cut = ends_of(pair)
    # Both sides go on, each with what never crosses.
    write(pair.west, pair.topic, [f"new-{number}" for number in range(20)])
    fill(pair.east, pair.topic, 60, 2)
    spec, found = looked_at(pair)
    assert [one.code for one in found.notices] == ["AB613"]
    assert [one.target_end for one in found.bounds] == [end for _, end in cut]
    done = [compared(spec, one)[0].findings for one in found.bounds]
    assert [(one.told, one.by_kind) for one in done] == [([], {})] * 2
    assert [one.counts.records for one in done] == [100, 100]
    assert [one.counts.behind for one in done] == [30, 30]

    # What is lost before the cut is told as ever, and what retention took is none.
    delete_records(pair.west, pair.topic, cut[0][1] + 1)
    spec, found = looked_at(pair)
    done = [compared(spec, one)[0].findings for one in found.bounds]
    assert [one.told for one in done] == [[], []]
    assert [one.counts.records for one in done] == [0, 100]
