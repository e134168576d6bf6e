"""Settings of MirrorMaker 2, Connect and Strimzi are answered by the field that stands for them, by one table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reconciler.declare.documents import mirrormaker
from reconciler.declare.documents.resources import schema_text
from tests.unit.declare.declaring import HEAD, place, refused

ROOT = Path(__file__).parents[4]
OF_KAFKA: dict[str, list[str]] = json.loads((ROOT / "tests/data/connect/settings-4.3.json").read_text())
DEFINITIONS = json.loads(schema_text())["definitions"]
PAGE = (ROOT / "docs" / "reference" / "topology.md").read_text(encoding="utf-8")
NAMES = re.compile(r"`([^`]+)`")
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.startswith("| `")]


def flow(more: str) -> str:
    return f"{HEAD}flows:\n- from: a\n  to: b\n  {more}\n"


def keys_of(cell: str) -> list[str]:
    """Return the settings that a cell of the reference names, without the prefixes that say whose they are."""
    named = [name.partition(" =")[0] for name in NAMES.findall(cell) if not name.startswith("-")]
    return [re.sub(r"^(…\.|A(->B)?\.(consumer|producer|admin)\.…|A(->B)?\.…|A(->B)?\.)", "", name) for name in named]


@pytest.mark.parametrize(
    ("field", "key"),
    [
        (field, key)
        for row in ROWS
        if len(row) == 5
        for field in NAMES.findall(row[0])
        for key in keys_of(row[3])
        if key and not field.startswith("clusters.*.clients") and field not in ("clusters", "replication")
    ],
)
def test_what_the_reference_names_beside_a_field_is_answered_by_it(field: str, key: str) -> None:
    found = mirrormaker.answer(key)
    assert found is not None, key
    assert field in found.fields


def test_fields_that_stand_for_settings_are_in_the_reference() -> None:
    known = {field for row in ROWS for field in NAMES.findall(row[0])} | {"from", "to"}
    assert {field for fields in mirrormaker.fields().values() for field in fields} <= known


@pytest.mark.parametrize("owner", sorted(OF_KAFKA))
def test_every_setting_of_kafka_4_3_is_known(owner: str) -> None:
    """Those of its clients, workers and connectors, as their classes list them; some are ours under the same name."""
    same = {key for role in ("consumer", "producer", "admin") for key in DEFINITIONS[role]["properties"]}
    assert [
        key for key in OF_KAFKA[owner] if key not in same and mirrormaker.answer(key, behind_alias=False) is None
    ] == []


def test_the_reference_says_of_the_others_why_nothing_stands_for_them() -> None:
    section = PAGE.partition("## Settings that nothing stands for\n")[2].partition("\n## ")[0]
    said = {
        key: why
        for why, keys in (line.strip("| ").split(" | ") for line in section.splitlines() if line.endswith("` |"))
        for key in NAMES.findall(keys)
    }
    assert said == mirrormaker.without_field()


@pytest.mark.parametrize(
    ("written", "message", "remedy"),
    [
        (
            "replication.policy.class: org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
            "replication.policy.class is declared elsewhere: by `policy.type` or `policy.class` of flows",
            "write policy: {type: identity} in its place",
        ),
        (
            "sync.topic.acls.enabled: false",
            "sync.topic.acls.enabled is declared elsewhere: by `acls` of flows",
            "remove it, and use `acls` of flows",
        ),
        (
            "emit.checkpoints.enabled: true",
            "emit.checkpoints.enabled is declared elsewhere: by `groups.include` of flows (checkpoints are written for "
            "the groups that it names)",
            "remove it, and use `groups.include` of flows (checkpoints are written for the groups that it names)",
        ),
        (
            "offset-syncs.topic.location: target",
            "offset-syncs.topic.location has no field here: offset syncs are written to the target, with each commit",
            "remove it",
        ),
        (
            "source->target.sync.group.offsets.enabled: true",
            "source->target.sync.group.offsets.enabled is declared elsewhere: by `groups.sync-offsets` of flows",
            "remove it, and use `groups.sync-offsets` of flows",
        ),
        (
            "tasksMax: 4",
            "tasksMax is declared elsewhere: by `tasks` of flows",
            "remove it, and use `tasks` of flows",
        ),
        (
            "source.consumer.fetch.max.bytes: 1000000",
            "source.consumer.fetch.max.bytes is declared elsewhere: by `clients.consumer.fetch.max.bytes` of the "
            "cluster",
            "remove it, and use `clients.consumer.fetch.max.bytes` of the cluster",
        ),
    ],
)
def test_a_flow_that_is_written_as_elsewhere(tmp_path: Path, written: str, message: str, remedy: str) -> None:
    (problem,) = refused(tmp_path, flow(written))
    assert (problem.code, problem.message, problem.remedy) == ("AB103", message, remedy)
    assert place(problem, tmp_path).startswith("0.yaml:11:3 (flows[0]")


def test_settings_of_security_are_shown_as_they_are_no_secrets(tmp_path: Path) -> None:
    security = "{protocol: SSL, ssl.truststore.location: /a/b.jks}"
    body = f"version: 1\nname: shop\nclusters:\n  a:\n    bootstrap: b:9092\n    security: {security}\n"
    (problem,) = refused(tmp_path, body)
    assert problem.message == "ssl.truststore.location is declared elsewhere: by `security.ca` of the cluster"
    assert "b.jks" not in str(problem)


def test_all_that_is_wrong_is_told_though_a_field_is_unknown(tmp_path: Path) -> None:
    body = "replication:\n- fan-out: {from: a, to: [b, eu-wst]}\n  task: 4\n"
    body += "flows:\n- {from: c, to: d}\n- {from: c, to: d}\n"
    unknown, misspelt, twice = refused(tmp_path, HEAD + body)
    assert (unknown.message[:40], misspelt.message, misspelt.remedy, twice.code) == (
        "expected a declared cluster; found 'eu-w",
        *("unknown field task", "did you mean tasks?", "AB106"),
    )


def test_flows_that_are_known_are_held_against_each_other_though_another_is_in_doubt(tmp_path: Path) -> None:
    both_ways = "- {from: a, to: b, policy: {type: identity}}\n- {from: b, to: a, policy: {type: identity}}\n"
    body = f"flows:\n{both_ways}- {{from: c, to: d, task: 1, topics: {{include: [x]}}}}\n"
    assert [one.code for one in refused(tmp_path, HEAD + body)] == ["AB108", "AB103"]
    # What is in doubt itself is not: its policy may be what is misspelt.
    doubtful = body.replace("{from: b, to: a,", "{from: b, to: a, polic: {type: default},")
    assert [one.code for one in refused(tmp_path, HEAD + doubtful)] == ["AB103", "AB103"]
    shared = "defaults: {tpics: {exclude: [x]}}\n"
    assert [one.code for one in refused(tmp_path, HEAD + shared + "flows:\n" + both_ways)] == ["AB103"]
    begun = "defaults: {start: {offsets: {orders: [1]}}}\nflows:\n- {from: a, to: b, topic: {include: [orders]}}\n"
    begun += "- {from: c, to: d, topics: {include: [x]}}\n"
    assert [one.code for one in refused(tmp_path, HEAD + begun)] == ["AB103"]
    overlaid = "replication:\n- {from: a, to: b, polcy: {type: identity}}\nflows:\n- {from: a, to: b, tasks: 2}\n"
    assert [one.code for one in refused(tmp_path, HEAD + overlaid)] == ["AB103"]
