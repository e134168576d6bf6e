"""Topics that are new when a flow is failed back: made beside its copies, or made anew on either side."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.consumers import leave_behind, offsets_of
from tests.support.clusters.kafka import create, declared, delete, names
from tests.support.commands.failing_over import MakePair, named, read_from, write
from tests.support.replicator.copying import log_end


def again(cluster: EmbeddedCluster, topic: str, values: list[str]) -> None:
    """Delete a topic and make it again, with other records."""
    delete(cluster, topic)
    create(cluster, topic, 2)
    if values:
        write(cluster, topic, values)


@pytest.mark.long
def test_what_was_made_meanwhile_is_told_and_nothing_is_mixed(make: MakePair, tmp_path: Path) -> None:
    # What is copied back as a whole has identical offsets then, the rest its own.
    pair = make("translated", "empty", "filled", "copied")
    topic, group = pair.topic, pair.group("a")
    empty, filled, copied = (pair.other(name) for name in ("empty", "filled", "copied"))
    leave_behind(pair.east, group, {(empty, 0): 40})
    assert pair.over("--yes").code == 0
    new = pair.other("new")
    create(pair.west, new)
    write(pair.west, new, named("only-here", 3))
    again(pair.east, empty, [])
    again(pair.east, filled, named("other", 9))
    again(pair.west, copied, named("other", 9))
    for one in (topic, empty, filled):
        write(pair.west, one, named("new", 5))

    nobody_knows = pair.back("--dry-run")
    assert (nobody_knows.code, "[AB714]" in nobody_knows.err, copied in nobody_knows.err) == (1, True, True)
    delete(pair.west, copied)
    shown = pair.back("--dry-run")
    said = " ".join(shown.out.split())
    assert (shown.code, "[AB705]" in shown.err, pair.phase) == (4, True, "over"), shown
    assert f"they stay at west unchanged: {new}" in said
    assert f"topic {empty} was deleted at east and made again, and is empty: {empty} is copied back as a whole" in said
    assert f"topic {filled} was deleted at east and made again: its records were never copied" in said
    assert f"topic {copied} does not exist at west, or is not visible: {copied} is not copied back" in said
    assert f"topic {filled}: it has 9 records that were never copied, and its copy {filled} has 5 new ones" in shown.err

    original = read_from(pair.east, copied, 0)
    back = pair.back("--yes", "--rebuild", filled, "--export", tmp_path)
    assert (back.code, pair.phase) == (0, None), back
    assert len((tmp_path / f"{filled}.jsonl").read_text().splitlines()) == 9
    # Copies are back as a whole, at the places where they stand.
    for one in (empty, filled):
        assert read_from(pair.east, one, 0) == read_from(pair.west, one, 0)
        assert [log_end(declared("any", side), one) for side in (pair.east, pair.west)] == [
            log_end(declared("west", pair.west), one)
        ] * 2
    assert offsets_of(pair.east, group) == {(empty, 0): 40}
    assert read_from(pair.east, topic, 100) == named("new", 5)
    # What belongs to nobody here is where it was.
    assert read_from(pair.east, copied, 0) == original
    assert (new in names(pair.east), read_from(pair.west, new, 0)) == (False, named("only-here", 3))

    for one in (topic, empty, filled):
        write(pair.east, one, ["more"])
    pair.copy()
    for one in (topic, empty, filled):
        assert read_from(pair.west, one, 0)[-6:] == [*named("new", 5), "more"]
