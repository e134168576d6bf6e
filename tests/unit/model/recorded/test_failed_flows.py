"""Which clusters need not answer, as all flows from them are failed over."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from reconciler.model.declared.flow import Flow
from reconciler.model.recorded.failed_flows import needless_sources
from tests.unit.plan.facts import flow

RUNS, RESTS = flow("east", "west"), flow("east", "north", failed_over=True)


def nowhere(_alias: str) -> Collection[str]:
    return ()


@pytest.mark.parametrize(
    ("flows", "needless"),
    [
        ((), set()),
        ((RESTS,), {"east"}),
        ((RESTS, RUNS), set()),
        ((RESTS, flow("east", "west", enabled=False)), {"east"}),
        # It is a target as well, be the flow enabled or not.
        ((RESTS, flow("west", "east", failed_over=True)), set()),
        ((RESTS, flow("west", "east", enabled=False)), set()),
        ((flow("east", "north", failed_over=True, enabled=False),), set()),
        ((flow("south", "north", failed_over=True),), set()),
    ],
)
def test_a_source_is_needed_unless_all_its_flows_rest(flows: Collection[Flow], needless: set[str]) -> None:
    assert needless_sources(flows, ["east"], nowhere) == needless


def test_a_record_at_a_target_that_answers_is_enough() -> None:
    assert needless_sources((RUNS, RESTS), ["east", "west"], nowhere) == set()
    asked = []

    def on_record(alias: str) -> Collection[str]:
        asked.append(alias)
        return {RUNS.name}

    assert needless_sources((RUNS, RESTS), ["east"], on_record) == {"east"}
    assert asked == ["west"], "what is declared is not asked for"
