"""`offsets translate` and `offsets read --flow` after a data centre is lost, and while people write to the copies."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.cli.main import main
from tests.support.clusters.kafka import declared
from tests.support.commands.failing_over import MODES, MakePair, Pair, Said, ends_of, write
from tests.support.replicator.copying import fill, log_end

# Nothing listens there.
NOBODY = "127.0.0.1:1"
UNREACHABLE = 6


def asked(pair: Pair, capsys: pytest.CaptureFixture[str], command: str, *arguments: object) -> Said:
    capsys.readouterr()
    options = ["--flow", "over", "--format", "json", *map(str, arguments)]
    code = main(["offsets", command, str(pair.file), *options])
    said = capsys.readouterr()
    return Said(code, said.out, " ".join(said.err.split()))


def translated(
    pair: Pair, capsys: pytest.CaptureFixture[str], *offsets: int, way: str = "", options: tuple[str, ...] = ()
) -> list[tuple[int | None, str]]:
    places = [part for offset in offsets for part in ("--offset", f"{pair.topic}/0:{offset}")]
    said = asked(pair, capsys, "translate", *places, *([way] if way else []), *options)
    assert said.code == 0, said
    return [(one["translated"], one["how"]) for one in said.json["offsets"]]


def positions(pair: Pair, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[list[Any], str]:
    said = asked(pair, capsys, "read", *options)
    assert said.code == 0, said
    rows = said.json["offsets"]
    return [(one["partition"], one["offset"], one["log_end"], one["lag"]) for one in rows], said.err


@pytest.mark.parametrize("offsets", MODES)
def test_a_lost_source_is_not_asked_where_somebody_says_so(
    make: MakePair, offsets: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = make(offsets)
    end = log_end(declared("west", pair.west), pair.topic)
    known = translated(pair, capsys, 0, 40, 100, 101)
    assert known == [(0, "record"), (40, "record"), (end, "end"), (end, "ahead")]
    back = translated(pair, capsys, 40, end, end + 5, way="--upstream")
    assert back == [(40, "record"), (100, "end"), (100, "ahead")]
    fill(pair.east, pair.topic, 10, 2)
    (row,) = asked(pair, capsys, "translate", "--offset", f"{pair.topic}/0:104").json["offsets"]
    assert (row["how"], row["why"].endswith(f"{pair.topic}/0 has copied up to 100")) == ("ahead", True), row
    pair.write(NOBODY)
    assert asked(pair, capsys, "translate", "--offset", f"{pair.topic}/0:40").code == UNREACHABLE
    assert asked(pair, capsys, "read").code == UNREACHABLE
    lost = ("--source-lost",)
    assert translated(pair, capsys, 0, 40, 100, 101, options=lost) == known
    assert translated(pair, capsys, 40, end, end + 5, way="--upstream", options=lost) == back
    found, said = positions(pair, capsys, *lost)
    assert found == [(0, 100, None, None), (1, 100, None, None)]
    assert "where logs of east begin and end, and the lag, are not known without the source" in said


@pytest.mark.parametrize("offsets", MODES)
def test_what_came_to_a_copy_behind_its_cut_is_not_counted_as_copied(
    make: MakePair, offsets: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = make(offsets)
    assert pair.over("--yes").code == 0
    (copied, end), _ = ends_of(pair)
    write(pair.west, pair.topic, [f"new-{number}" for number in range(50)])
    fill(pair.east, pair.topic, 60, 2)
    told = "flow over is failed over since"
    found, said = positions(pair, capsys)
    assert (found, told in said) == ([(0, copied, 130, 30), (1, copied, 130, 30)], True)
    for way in ((), ("--source-lost",)):
        # What crossed is told; who had read on, and who reads what came since, goes on at the cut.
        down = translated(pair, capsys, 40, copied, copied + 10, options=way)
        assert down == [(40, "record"), (end, "end"), (end, "ahead")]
        up = translated(pair, capsys, 40, end, end + 10, way="--upstream", options=way)
        assert up == [(40, "record"), (copied, "end"), (copied, "ahead")]
    pair.write(NOBODY)
    found, said = positions(pair, capsys, "--source-lost")
    assert (found, told in said) == ([(0, copied, None, None), (1, copied, None, None)], True)
