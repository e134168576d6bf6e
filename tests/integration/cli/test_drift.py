"""`drift` on real clusters: what outsiders change is told with its field and mended, and silence is never clean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create, delete, grow, set_config, topic_id
from tests.support.commands.command import anabranch
from tests.support.commands.payments import write

DRIFTED, UNREACHABLE, REFUSED = 3, 6, 4


def drifted(path: Path, *options: str) -> list[tuple[str, str, str, str | None, str | None]]:
    ended = anabranch("drift", path, "--format", "json", "--detailed-exitcode", *options)
    value: dict[str, Any] = json.loads(ended.stdout)
    assert ended.code == (DRIFTED if value["drift"] else 0), ended.stderr
    assert value["clean"] is not bool(value["drift"])
    return [(one["kind"], one["topic"], one["field"], one["desired"], one["found"]) for one in value["drift"]]


def test_outside_changes_are_told_and_mended(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    path = write(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)
    a, b, c, d = (f"{topic_name}-{end}" for end in "abcd")
    for one in (a, b, c, d):
        create(source_cluster, one, 2, {"retention.ms": "86400000"})
    assert anabranch("apply", path, "--yes").code == 0
    assert drifted(path) == []

    set_config(target_cluster, f"us-east.{a}", "retention.ms", "1000")
    set_config(target_cluster, f"us-east.{a}", "flush.ms", "1000")
    delete(target_cluster, f"us-east.{b}")
    grow(target_cluster, f"us-east.{c}", 5)
    found = drifted(path)
    assert found == [
        ("changed", f"us-east.{a}", "retention.ms", "86400000", "1000"),
        ("unmanaged", f"us-east.{a}", "flush.ms", None, "1000"),
        ("missing", f"us-east.{b}", "topic", "2 partitions", None),
        ("changed", f"us-east.{c}", "partitions", "2", "5"),
    ]
    assert drifted(path, "--ignore", "flush.ms", "--ignore", "partitions") == [found[0], found[2]]
    text = anabranch("drift", path).stdout
    assert f"~ changed   us-east.{a}   retention.ms: 86400000 → 1000" in text

    assert anabranch("apply", path, "--yes").code == 0
    # What nobody declared is somebody else's, and stays.
    assert drifted(path) == [found[1]]
    assert anabranch("plan", path, "--detailed-exitcode").code == 0

    before = topic_id(target_cluster, f"us-east.{d}")
    delete(target_cluster, f"us-east.{d}")
    create(target_cluster, f"us-east.{d}", 2)
    after = topic_id(target_cluster, f"us-east.{d}")
    assert drifted(path, "--ignore", "flush.ms") == [("changed", f"us-east.{d}", "topic id", before, after)]
    assert anabranch("apply", path, "--yes").code == REFUSED
    delete(target_cluster, f"us-east.{d}")
    assert anabranch("apply", path, "--yes").code == 0
    assert drifted(path, "--ignore", "flush.ms") == []


def test_a_cluster_that_does_not_answer_makes_nothing_look_missing(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    path = write(tmp_path, source_cluster.bootstrap, target_cluster.bootstrap, topic_name)
    create(source_cluster, topic_name, 2)
    assert anabranch("apply", path, "--yes").code == 0
    delete(target_cluster, f"us-east.{topic_name}")
    # Neither the source nor one of the targets answers: the other target is looked at all the same.
    nobody = "127.0.0.1:9"
    declaration = path.read_text().replace(source_cluster.bootstrap, nobody)
    third = f'  far: {{bootstrap: ["{nobody}"]}}\ndefaults:'
    more = "  - {from: us-east, to: far}\n"
    path.write_text(declaration.replace("defaults:", third) + more)
    ended = anabranch("drift", path, "--format", "json", "--detailed-exitcode")
    value = json.loads(ended.stdout)
    assert ended.code == UNREACHABLE
    assert "[AB310]" in ended.stderr
    assert value["clusters"] == ["eu-west"]
    assert [(one["cluster"], one["kind"], one["topic"]) for one in value["drift"]] == [
        ("eu-west", "missing", f"us-east.{topic_name}")
    ]
    assert [problem["code"] for problem in value["unreachable"]] == ["AB310"]
    ended = anabranch("drift", path, "--format", "json", "--clusters", "far")
    value = json.loads(ended.stdout)
    assert (ended.code, value["clean"], value["drift"]) == (UNREACHABLE, None, [])
