"""What the journal keeps of a flow that is failed over: records of a release that kept less are read, too."""

from __future__ import annotations

from typing import Any

from reconciler.model.recorded.failover import Cut
from reconciler.state.failovers import failed_over

FLOW = {"kind": "failover", "topology": "shop", "flow": "over", "phase": "over", "since": 5.0, "by": "ops"}
CUT: dict[str, Any] = {
    "kind": "failover-cut",
    "topology": "shop",
    "flow": "over",
    "topic": "orders",
    "remote": "east.orders",
    "mode": "translated",
    "ends": [[100, 100], [-1, 0]],
    "handed": False,
    "anew": "",
    "since": 5.0,
}


def test_what_was_said_with_positions_is_kept() -> None:
    cut = failed_over("shop", [FLOW, CUT | {"notes": ["{}", ""]}])["over"].cuts["orders"]
    assert cut == Cut("orders", "east.orders", "translated", ((100, 100), (-1, 0)), notes=("{}", ""))
    assert [cut.note(number) for number in (0, 1, 2)] == ["{}", "", ""]


def test_a_cut_of_an_older_release_says_nothing_of_it() -> None:
    cut = failed_over("shop", [FLOW, CUT])["over"].cuts["orders"]
    assert (cut.ends, cut.notes, cut.note(0)) == (((100, 100), (-1, 0)), (), "")
