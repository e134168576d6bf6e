"""What `status` says of how consumer groups are looked after."""

from __future__ import annotations

from dataclasses import replace

from reconciler.model.declared.groups import LastLook
from reconciler.report.status.summary import status_lines, summarise
from reconciler.report.status.to_json import status_json
from tests.support.replicator.words import (
    NOW,
    flow,
    partition,
    said,
    with_groups,
)


def looked(last: LastLook | None, interval: float = 60.0) -> tuple[str, object]:
    """What is told of a running flow's groups, for people behind the lag, and as JSON."""
    here = {} if last is None else {"east-west": last}
    made = summarise([with_groups(interval)], [said(partition(0, 1, 1))], NOW, {}, here)
    (line,) = status_lines(made)
    (value,) = status_json(made, NOW)["flows"]
    return line.plain.partition("records")[2].strip(), value["groups"]


def test_when_groups_were_looked_at_is_told() -> None:
    assert looked(LastLook(NOW - 20, 1_200)) == (
        "groups 1,200, looked at 20 s ago",
        {"count": 1_200, "silentSeconds": 20.0, "late": False},
    )
    assert looked(LastLook(NOW - 20), interval=1)[0] == "groups, looked at 20 s ago"
    assert looked(LastLook(NOW - 200, 0)) == (
        "groups 0, none matches groups.include, looked at 3 min ago",
        {"count": 0, "silentSeconds": 200.0, "late": True},
    )
    assert looked(None) == ("groups: no look known", {"count": None, "silentSeconds": None, "late": False})
    # The clocks of two machines differ.
    assert looked(LastLook(NOW + 5, 1))[0] == "groups 1, looked at 0 s ago"


def test_groups_that_nobody_ever_looks_at_are_late_once_the_flow_has_run_long_enough() -> None:
    def late(ran_for: float, looks: dict[str, LastLook | None], **changes: object) -> bool:
        word = replace(said(partition(0, 1, 1)), **{"since": NOW - ran_for} | changes)  # type: ignore[arg-type]
        (one,) = summarise([with_groups()], [word], NOW, {}, looks)
        assert one.groups is not None
        return one.groups.late

    assert [late(ran_for, {}) for ran_for in (179.0, 181.0)] == [False, True]
    assert not late(1_000.0, {"east-west": None}), "it cannot be read"
    assert not late(1_000.0, {}, time=NOW - 60), "nothing runs"
    assert not late(1_000.0, {}, since=0.0), "an older release does not say"


def test_nothing_is_told_of_groups_where_there_are_none_or_nobody_asked() -> None:
    words = [said(partition(0, 1, 1))]
    for made in (summarise([flow()], words, NOW, {}, {}), summarise([with_groups()], words, NOW)):
        assert [one.groups for one in made] == [None]
        assert "groups" not in status_lines(made)[0].plain
        assert status_json(made, NOW)["flows"][0]["groups"] is None
