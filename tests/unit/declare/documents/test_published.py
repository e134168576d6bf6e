"""Published configurations of MirrorMaker 2 as topology files, each with what differs from it, by design.

`tests/data/published` has six that run in production or stand in guides. Beside each file a table says which field has
the place of each setting, and what is not the same.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from reconciler import declare
from reconciler.declare.documents import mirrormaker
from reconciler.model.base.errors import Problem

FOLDER = Path(__file__).parents[3] / "data" / "published"
FILES = sorted(path for path in FOLDER.glob("*.yaml") if ".differences" not in path.name)
# What is not the same, of each; a release that closes a difference takes it out here and in the table.
DIFFERENT = {
    "1": """authentication topicsPattern tasksMax replication.policy.separator producer.batch.size producer.linger.ms
        offset-syncs.topic.location offset-syncs.topic.replication.factor heartbeats.topic.replication.factor
        replicas resources jvmOptions metricsConfig""",
    "2": """datalake->test.enabled topics groups consumer.auto.offset.reset config.storage.replication.factor
        offset.storage.replication.factor status.storage.replication.factor""",
    "3": """prim.sasl.jaas.config tasks.max sync.topic.configs.interval.seconds sync.topic.acls.interval.seconds
        compression.type batch.size sync.group.offsets.interval.seconds emit.checkpoints.interval.seconds
        consumer.max.poll.records producer.buffer.memory
        producer.max.in.flight.requests.per.connection producer.retries offset-syncs.topic.location""",
    "4": """source.cluster.bootstrap.servers source.cluster.sasl.jaas.config topics
        consumer.group.id consumer.session.timeout.ms consumer.heartbeat.interval.ms producer.retry.backoff.ms
        client.dns.lookup key.converter emit.checkpoints.enabled""",
    "5": """origin.bootstrap.servers origin.ssl.truststore.location origin.ssl.keystore.location origin.ssl.key.password
        origin->destination.topics config.properties.exclude offset-syncs.topic.location""",
    "6": """topicsExcludePattern groupsExcludePattern tasksMax sync.group.offsets.interval.seconds
        refresh.groups.interval.seconds autoRestart logging""",
}
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def read(path: Path) -> Any:
    return YAML(typ="safe").load(path)


def at(value: Any, path: str) -> Any:
    """Return what stands at a path such as `flows[0].topics.include`."""
    for name, index in _STEP.findall(path):
        value = value[int(index)] if index else value[name]
    return value


def table(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read(path.with_name(f"{path.stem}.differences.yaml"))
    return rows


def _are_numbers(*values: Any) -> bool:
    """Tell whether all are numbers, or yes and no: neither words nor lengths of time, which are written otherwise."""
    return all(isinstance(value, int) for value in values)


def test_there_are_six() -> None:
    assert [path.stem for path in FILES] == list(DIFFERENT)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_is_valid_without_a_warning(path: Path) -> None:
    told: list[Problem] = []
    assert declare.load([path], warn=told.append).flows
    assert told == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_what_differs_is_what_is_listed(path: Path) -> None:
    assert [row["setting"] for row in table(path) if "differs" in row] == DIFFERENT[path.stem].split()


@pytest.mark.parametrize(
    ("path", "row"),
    [(path, row) for path in FILES for row in table(path)],
    ids=lambda one: str(getattr(one, "stem", "")),
)
def test_each_setting_is_declared_by_the_field_that_stands_for_it(path: Path, row: dict[str, Any]) -> None:
    answer = mirrormaker.answer(row["setting"])
    if "field" not in row:
        assert row["differs"] and answer is not None
        return
    value = at(read(path), row["field"])
    general = re.sub(r"^clusters\.[^.]+", "clusters.*", re.sub(r"^flows\[\d+\]\.", "", row["field"]))
    if answer is None:
        role, _, key = row["setting"].removeprefix("source.").partition(".")
        assert general == f"clusters.*.clients.{role}"
        assert key in value
        declared = value[key]
    else:
        assert general in answer.fields
        declared = value
    if "differs" not in row and "value" in row and (answer is None or _are_numbers(declared, row["value"])):
        assert declared == row["value"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_field_of_flows_stands_for_a_setting(path: Path) -> None:
    document = read(path)
    told = {row["field"] for row in table(path) if "field" in row}
    for index, flow in enumerate(document["flows"]):
        for field, value in flow.items():
            inner = [f"{field}.{key}" for key in value] if isinstance(value, dict) else [field]
            for one in inner:
                assert field in ("from", "to") or f"flows[{index}].{one}" in told, one
