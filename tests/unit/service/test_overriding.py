"""Which override a flow gets by a change of one of its connectors, and which changes are refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.convert.plugins import CHECKPOINTS, HEARTBEATS, SOURCE
from reconciler.declare import lay_over
from reconciler.declare.documents.settings import BUILT_IN
from reconciler.model.base.errors import DeclaredInputError, Problem
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.override import FlowOverride
from reconciler.model.declared.topology import Topology
from reconciler.model.recorded.connector import ConnectorRecord, ConnectorState
from reconciler.model.recorded.declaration import declaration_into
from reconciler.service.connect import overriding
from tests.unit.declare.declaring import HEAD, load

FILE = f"""{HEAD}flows:
  - from: a
    to: b
    topics: {{include: ["orders(?:-eu)?", payments], exclude: [tmp]}}
    policy: {{type: rename, rules: [{{from: 'o(.*)', to: 'p-o\\1'}}]}}
    tasks: 4
    quota: 5MB/s
    groups: {{include: [app, web], interval: 30s}}
    heartbeats: 2s
"""


@pytest.fixture
def topology(tmp_path: Path) -> Topology:
    return load(tmp_path, FILE)


def config(topology: Topology, kind: str = SOURCE) -> dict[str, str]:
    return overriding.config_of_connector(topology, topology.flows[0], kind)


def put(
    topology: Topology, settings: Mapping[str, str], name: str = "a-b", state: ConnectorState = "RUNNING"
) -> FlowOverride:
    return overriding.override_of(topology, ConnectorRecord(name, settings, state))


def flow_of(topology: Topology, override: FlowOverride) -> Flow:
    (found,) = (one for one in lay_over(topology, [override]).flows if one.name == override.flow)
    return found


@pytest.mark.parametrize(
    ("kind", "name"), [(SOURCE, "a-b"), (CHECKPOINTS, "a-b-checkpoint"), (HEARTBEATS, "a-b-heartbeat")]
)
def test_what_is_put_as_it_was_read_changes_nothing(topology: Topology, kind: str, name: str) -> None:
    same = put(topology, config(topology, kind), name)
    assert same.entry == {"enabled": True}
    assert declaration_into(lay_over(topology, [same]), "b") == declaration_into(topology, "b")


@pytest.mark.parametrize(
    ("settings", "entry"),
    [
        ({"tasks.max": "2"}, {"tasks": 2}),
        ({"topics": "orders , x"}, {"topics": {"include": ["orders", "x"]}}),
        ({"topics.exclude": ""}, {"topics": {"exclude": []}}),
        ({"refresh.topics.interval.seconds": "7"}, {"refresh-interval": "7s"}),
        ({"replication.factor": "2"}, {"replication-factor": 2}),
        ({"sync.topic.acls.enabled": "false"}, {"acls": False}),
        ({"enabled": "false"}, {"enabled": False}),
        ({"source.cluster.bootstrap.servers": " b1.a.example:9092 ; "}, {}),
        ({"key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"}, {}),
    ],
)
def test_a_setting_becomes_the_field_that_stands_for_it(
    topology: Topology, settings: dict[str, str], entry: dict[str, Any]
) -> None:
    made = put(topology, config(topology) | settings)
    assert made.entry == {"enabled": True} | entry
    flow = flow_of(topology, made)
    assert (flow.quota, flow.policy.kind, flow.groups.include) == (5_000_000, "rename", ("app", "web")), (
        "the rest stays"
    )


def test_a_setting_that_is_left_out_has_the_default(topology: Topology) -> None:
    less = {key: value for key, value in config(topology).items() if key not in ("tasks.max", "topics.exclude")}
    assert put(topology, less).entry == {
        "tasks": BUILT_IN["tasks"].value,
        "topics": {"exclude": []},
        "enabled": True,
    }


def test_groups_are_those_of_the_checkpoint_connector(topology: Topology) -> None:
    changed = config(topology, CHECKPOINTS) | {"groups": "other", "sync.group.offsets.enabled": "true"}
    made = put(topology, changed, "a-b-checkpoint")
    assert made.entry == {"groups": {"include": ["other"], "sync-offsets": True}, "enabled": True}
    off = put(topology, config(topology, CHECKPOINTS) | {"emit.checkpoints.enabled": "false"}, "a-b-checkpoint")
    assert flow_of(topology, off).groups.include == ()


def test_a_connector_that_is_taken_out_takes_its_part_of_the_flow_along(topology: Topology) -> None:
    assert flow_of(topology, overriding.without(topology, topology.flows[0], HEARTBEATS)).heartbeats == 0
    bare = flow_of(topology, overriding.without(topology, topology.flows[0], CHECKPOINTS))
    assert (bare.groups.include, bare.enabled, bare.tasks) == ((), True, 4)
    gone = overriding.without(topology, topology.flows[0], SOURCE)
    assert (gone.is_removed, flow_of(topology, gone).enabled) == (True, False)


def test_a_second_change_keeps_the_first_one(topology: Topology) -> None:
    once = lay_over(topology, [put(topology, config(topology) | {"tasks.max": "2"})])
    twice = put(once, config(once) | {"topics": "x"})
    assert twice.entry == {"tasks": 2, "topics": {"include": ["x"]}, "enabled": True}
    stopped = overriding.enabled(once, once.flows[0], False)
    assert stopped.entry == {"tasks": 2, "enabled": False}


def test_a_new_connector_between_declared_clusters_is_a_new_flow(topology: Topology) -> None:
    wanted = {"connector.class": "MirrorSource", "source.cluster.alias": "b", "target.cluster.alias": "a"}
    made = put(topology, wanted | {"topics": "x", "tasks.max": "3"}, "back", "STOPPED")
    assert (made.source, made.target, made.is_new) == ("b", "a", True)
    assert made.entry == {"topics": {"include": ["x"]}, "tasks": 3, "enabled": False}


@pytest.mark.parametrize(
    ("name", "settings", "key", "text"),
    [
        ("a-b", {"foo.bar": "1"}, "foo.bar", "no setting of MirrorMaker 2, Connect or its clients"),
        (
            "a-b",
            {"source.cluster.sasl.mechanism": "PLAIN"},
            "source.cluster.sasl.mechanism",
            "it is not changed here: nearest is `security.mechanism` of the cluster",
        ),
        ("a-b", {"target.cluster.bootstrap.servers": "x:1"}, "target.cluster.bootstrap.servers", "b1.b.example:9092"),
        ("a-b", {"target.cluster.alias": "c"}, "target.cluster.alias", "expected b, as the flow has it; found c"),
        ("new", {"target.cluster.alias": "z"}, "target.cluster.alias", "expected a cluster of the topology files"),
        ("a-b", {"topics": "(?=x)"}, "topics", "it has a look-ahead"),
        ("x-checkpoint", {"connector.class": "MirrorCheckpoint"}, "name", "expected NAME-checkpoint"),
        ("a-b", {"connector.class": "MirusSource"}, "name", "expected one of MirrorMaker 2's"),
    ],
)
def test_a_change_that_no_flow_here_can_have_is_refused_at_its_setting(
    topology: Topology, name: str, settings: dict[str, str], key: str, text: str
) -> None:
    with pytest.raises(DeclaredInputError) as caught:
        put(topology, config(topology) | settings, name)
    (problem,) = caught.value.problems
    assert isinstance(problem, Problem)
    assert problem.where == f"connector {name} ({key})"
    assert text in problem.message
