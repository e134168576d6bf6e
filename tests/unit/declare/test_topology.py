"""What patterns, entries, defaults and several files make: flows, precedence, and what contradicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler import declare
from reconciler.declare.documents.resources import examples
from reconciler.model.base.errors import DeclaredInputError
from reconciler.model.connection.references import Reference
from reconciler.model.connection.security import Security
from reconciler.model.declared.cluster import Cluster
from reconciler.model.declared.flow import Flow
from reconciler.model.declared.start import Start
from reconciler.model.names.selection import Selection
from reconciler.model.policies.policy import ReplicationPolicy
from tests.unit.declare.declaring import HEAD, HEAD_LINES, flows, load, place, refused, said, warnings, write

SIX = "version: 1\nname: xdcr\nclusters:\n" + "".join(
    f"  {dc}-{number}: {{bootstrap: '{dc}-{number}.example:9092', datacenter: {dc}}}\n"
    for dc in ("west", "east", "north")
    for number in (1, 2)
)


def one(folder: Path, body: str) -> Flow:
    (flow,) = load(folder, HEAD + body).flows
    return flow


def test_fan_out(tmp_path: Path) -> None:
    assert flows(tmp_path, "replication: [{fan-out: {from: a, to: [b, c, d]}}]\n") == ["a→b", "a→c", "a→d"]


def test_aggregation(tmp_path: Path) -> None:
    assert flows(tmp_path, "replication: [{aggregation: {from: [a, b, c], to: d}}]\n") == ["a→d", "b→d", "c→d"]


def test_active_active_is_a_full_mesh(tmp_path: Path) -> None:
    assert flows(tmp_path, "replication: [{active-active: [a, b]}]\n") == ["a→b", "b→a"]
    assert flows(tmp_path, "replication: [{active-active: [a, b, c]}]\n") == [
        *("a→b", "a→c", "b→a", "b→c", "c→a", "c→b"),
    ]


def test_xdcr_is_flow_for_flow_what_mirrormakers_readme_writes_out(tmp_path: Path) -> None:
    body = "replication: [{xdcr: {west: [west-1, west-2], east: [east-1, east-2], north: [north-1, north-2]}}]\n"
    topology = load(tmp_path, SIX + body)
    assert [f"{flow.source}->{flow.target}" for flow in topology.flows] == [
        "west-1->west-2",
        "west-2->west-1",
        "east-1->east-2",
        "east-2->east-1",
        "north-1->north-2",
        "north-2->north-1",
        "west-1->east-1",
        "west-1->north-1",
        "east-1->west-1",
        "east-1->north-1",
        "north-1->west-1",
        "north-1->east-1",
    ]
    assert {flow.origin for flow in topology.flows} == {"replication[0] (xdcr)"}


def test_a_plain_flow_may_have_a_name_and_loop_back_under_another_name(tmp_path: Path) -> None:
    flow = one(tmp_path, "replication: [{from: a, to: a, name: mirror}]\n")
    assert (flow.name, flow.source, flow.target, flow.remote_topic("orders")) == ("mirror", "a", "a", "a.orders")
    assert flow.origin == "replication[0]"


def test_built_in_defaults(tmp_path: Path) -> None:
    assert one(tmp_path, "flows: [{from: a, to: b}]\n") == Flow(
        name="a-b",
        source="a",
        target="b",
        topics=Selection((".*",)),
        policy=ReplicationPolicy("default", "."),
        offsets="auto",
        delivery="exactly-once",
        start=Start("earliest"),
        fill="auto",
        on_data_loss="park",
        on_recreate="park",
        quota=None,
        batch_size=262_144,
        largest_batch=128 * 2**20,
        compression="source",
        linger=0.007,
        commit_interval=0.5,
        tasks=1,
        replication_factor=None,
        refresh_interval=60.0,
        enabled=True,
        origin="flows[0]",
    )


def test_the_more_specific_field_wins_one_by_one(tmp_path: Path) -> None:
    body = """
policy: {separator: "_"}
defaults: {tasks: 2, offsets: identical, replication-factor: 2, topics: {exclude: [".*-tmp"], required: true}}
replication:
  - {fan-out: {from: a, to: [b, c]}, tasks: 3, topics: {include: [orders]}, policy: {type: identity}}
  - {from: b, to: d}
flows:
  - {from: a, to: c, tasks: 4, topics: {include: [users]}, enabled: false}
  - {from: c, to: d, policy: {type: identity}, topics: {exclude: []}}
"""
    by_name = {flow.name: flow for flow in load(tmp_path, HEAD + body).flows}
    assert list(by_name) == ["a-b", "a-c", "b-d", "c-d"]
    assert by_name["a-b"] == Flow(
        "a-b",
        "a",
        "b",
        Selection(("orders",), (".*-tmp",), required=True),
        ReplicationPolicy("identity", "_"),
        "identical",
        tasks=3,
        replication_factor=2,
        origin="replication[0] (fan-out)",
    )
    assert by_name["a-c"] == Flow(
        "a-c",
        "a",
        "c",
        Selection(("users",), (".*-tmp",), required=True),
        ReplicationPolicy("identity", "_"),
        "identical",
        tasks=4,
        replication_factor=2,
        enabled=False,
        origin="replication[0] (fan-out)",
    )
    assert (by_name["b-d"].tasks, by_name["b-d"].remote_topic("x")) == (2, "b_x")
    assert by_name["c-d"].topics == Selection((".*",), (), required=True)
    assert by_name["c-d"].policy == ReplicationPolicy("identity", "_")


def test_how_a_flow_runs_is_overlaid_field_by_field_too(tmp_path: Path) -> None:
    body = """
defaults: {fill: markers, quota: 50MB/s, batch-size: 64 KB, on-recreate: restart}
replication:
  - {fan-out: {from: a, to: [b, c]}, quota: 1GiB/s, on-data-loss: continue, refresh-interval: 5min}
flows:
  - {from: a, to: c, quota: 300 KB/s, fill: transactions, batch-size: 0, commit-interval: 2s}
"""
    b, c = load(tmp_path, HEAD + body).flows
    assert (b.fill, b.quota, b.batch_size, b.refresh_interval) == ("markers", 1024**3, 64_000, 300.0)
    assert (b.on_data_loss, b.on_recreate) == ("continue", "restart")
    assert (c.fill, c.quota, c.batch_size, c.refresh_interval) == ("transactions", 300_000, 0, 300.0)
    assert (b.commit_interval, c.commit_interval) == (0.5, 2.0)
    assert (c.on_data_loss, c.on_recreate) == ("continue", "restart")


def test_a_start_replaces_another_as_a_whole(tmp_path: Path) -> None:
    body = """
defaults: {start: {offsets: {orders: [1200, 800], users: [0]}}}
flows:
  - {from: a, to: b}
  - {from: a, to: c, start: latest}
  - {from: a, to: d, start: {timestamp: 2026-01-31T12:00:00.500+01:00}}
"""
    assert [flow.start for flow in load(tmp_path, HEAD + body).flows] == [
        Start("offsets", 0, (("orders", (1200, 800)), ("users", (0,)))),
        Start("latest"),
        Start("timestamp", 1_769_857_200_500),
    ]


def test_policy_may_stand_under_defaults_but_not_in_both_places(tmp_path: Path) -> None:
    assert one(tmp_path, "defaults: {policy: {type: identity}}\nflows: [{from: a, to: b}]\n").policy.kind == "identity"
    both = "policy: {type: identity}\ndefaults: {policy: {type: identity}}\n"
    assert said(tmp_path, HEAD + both) == [f"0.yaml:{HEAD_LINES + 2}:12 (defaults.policy) AB106"]


def test_a_whole_number_written_with_a_point_is_a_whole_number(tmp_path: Path) -> None:
    flow = one(tmp_path, "flows: [{from: a, to: b, tasks: 4.0, replication-factor: 3.0}]\n")
    assert (type(flow.tasks), flow.tasks, type(flow.replication_factor)) == (int, 4, int)


def test_clusters(tmp_path: Path) -> None:
    text = """
version: 1
name: shop
clusters:
  a:
    bootstrap: b1.a.example:9092, [2001:db8::1]:9093
    datacenter: dc1
    security: {protocol: SASL_PLAINTEXT, mechanism: PLAIN, username: mirror, password: "file:/run/secrets/a"}
  b: {bootstrap: ["b1.b.example:9092"], rack: use1-az1}
flows: [{from: a, to: b}]
"""
    clusters = load(tmp_path, text).clusters
    password = Reference("file", "/run/secrets/a")
    assert clusters == {
        "a": Cluster(
            "a",
            ("b1.a.example:9092", "[2001:db8::1]:9093"),
            "dc1",
            Security("SASL_PLAINTEXT", "PLAIN", "mirror", password),
        ),
        "b": Cluster("b", ("b1.b.example:9092",), "default", Security(), "use1-az1"),
    }


@pytest.mark.parametrize("rack", ["", " a", "a ", "env:", "env:1X", "env:A B"])
def test_a_rack_that_is_no_name(tmp_path: Path, rack: str) -> None:
    (problem,) = refused(
        tmp_path, HEAD.replace("{bootstrap", f'{{rack: "{rack}", bootstrap', 1) + "flows: [{from: a, to: b}]\n"
    )
    if rack.startswith("env:"):
        assert (problem.code, "expected env:NAME" in problem.message) == ("AB110", True)
    else:
        assert (problem.code, "expected a rack's name, or a reference" in problem.message) == ("AB104", True)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # two patterns, and within one pattern and its plain neighbour
        ("replication: [{active-active: [a, b]}, {fan-out: {from: a, to: [b, c]}}]", ["(replication[1]) AB106"]),
        ("replication: [{active-active: [a, b]}, {from: a, to: b}]", ["(replication[1]) AB106"]),
        ("replication: [{from: a, to: b, name: x}, {from: b, to: c, name: x}]", ["(replication[1].name) AB106"]),
        # two entries
        ("flows: [{from: a, to: b}, {from: a, to: b}]", ["(flows[1]) AB106"]),
        ("flows: [{from: a, to: b, name: x}, {from: b, to: c, name: x}]", ["(flows[1].name) AB106"]),
        # an entry that takes the name of a pattern's flow between other clusters
        ("replication: [{from: a, to: b, name: x}]\nflows: [{from: a, to: c, name: x}]", ["(flows[0].name) AB106"]),
        # one cluster twice in one pattern
        ("replication: [{fan-out: {from: a, to: [a, b]}}]", ["(replication[0].fan-out.to[0]) AB106"]),
        ("replication: [{aggregation: {from: [a, b], to: b}}]", ["(replication[0].aggregation.to) AB106"]),
        ("replication: [{active-active: [a, b, a]}]", ["(replication[0].active-active[2]) AB106"]),
        ("replication: [{xdcr: {w: [a, b], e: [c, a]}}]", ["(replication[0].xdcr.e[1]) AB106"]),
        # clusters that nobody declared
        ("replication: [{fan-out: {from: x, to: [b, y]}}]", ["fan-out.from) AB105", "fan-out.to[1]) AB105"]),
        ("replication: [{xdcr: {w: [a, b], e: [x]}}]", ["(replication[0].xdcr.e[0]) AB105"]),
        ("flows: [{from: A, to: b}]", ["(flows[0].from) AB105"]),
    ],
)
def test_names_and_clusters_that_contradict(tmp_path: Path, body: str, expected: list[str]) -> None:
    found = said(tmp_path, HEAD + body + "\n")
    assert len(found) == len(expected)
    for line, end in zip(found, expected, strict=True):
        assert line.endswith(end)


def test_an_entry_overlays_the_flow_of_its_name_and_no_other(tmp_path: Path) -> None:
    body = "replication: [{from: a, to: b, name: x, topics: {include: [orders]}}]\n"
    entries = "flows: [{from: a, to: b, name: x, tasks: 9}, {from: a, to: b, topics: {include: [users]}}]\n"
    x, plain = load(tmp_path, HEAD + body + entries).flows
    assert (x.name, x.tasks, x.topics.include, x.origin) == ("x", 9, ("orders",), "replication[0]")
    assert (plain.name, plain.tasks, plain.topics.include, plain.origin) == ("a-b", 1, ("users",), "flows[1]")


def test_an_unknown_cluster_names_the_declared_ones_and_the_nearest(tmp_path: Path) -> None:
    (problem,) = refused(tmp_path, SIX + "flows: [{from: west-1, to: est-1}]\n")
    assert problem.message.startswith("expected a declared cluster; found 'est-1', declared are west-1, west-2, east-1")
    assert problem.remedy in ("did you mean east-1?", "did you mean west-1?")


def test_several_files_are_one_topology(tmp_path: Path) -> None:
    clusters = "version: 1\nname: shop\nclusters: {a: {bootstrap: 'a:1'}, b: {bootstrap: 'b:1'}}\n"
    shared = "version: 1\nname: shop\npolicy: {type: identity}\ndefaults: {tasks: 2}\n"
    patterns = "version: 1\nclusters: {c: {bootstrap: 'c:1'}}\nreplication: [{from: a, to: b}]\n"
    entries = "version: 1\nreplication: [{from: a, to: c}]\nflows: [{from: a, to: b, tasks: 5}]\n"
    topology = load(tmp_path, clusters, shared, patterns, entries)
    assert topology.name == "shop"
    assert list(topology.clusters) == ["a", "b", "c"]
    assert [(flow.name, flow.tasks, flow.policy.kind) for flow in topology.flows] == [
        ("a-b", 5, "identity"),
        ("a-c", 2, "identity"),
    ]


def test_several_files_that_contradict_each_other(tmp_path: Path) -> None:
    first = (
        "version: 1\nname: shop\nclusters: {a: {bootstrap: 'a:1'}, b: {bootstrap: 'b:1'}}\nflows: [{from: a, to: b}]\n"
    )
    second = "name: store\nclusters:\n  a: {bootstrap: 'x:1'}\npolicy: {type: identity}\nflows:\n  - {from: a, to: b}\n"
    third = "version: 1\npolicy: {type: default}\n"
    assert said(tmp_path, first, second, third) == [
        "1.yaml:1:1 AB112",
        "1.yaml:1:1 (name) AB106",
        "1.yaml:3:3 (clusters.a) AB106",
        "1.yaml:6:5 (flows[0]) AB106",
        "2.yaml:2:1 (policy) AB106",
    ]


def test_errors_point_at_the_other_place_too(tmp_path: Path) -> None:
    body = "replication:\n  - active-active: [a, b]\n  - {from: a, to: b}\n"
    (problem,) = refused(tmp_path, HEAD + body)
    assert place(problem, tmp_path) == f"0.yaml:{HEAD_LINES + 3}:5 (replication[1])"
    assert problem.message == f"flow a-b is declared twice, first in {tmp_path}/0.yaml:{HEAD_LINES + 2}"


def test_a_file_named_twice(tmp_path: Path) -> None:
    (path,) = write(tmp_path, HEAD + "flows: [{from: a, to: b}]\n")
    with pytest.raises(DeclaredInputError) as caught:
        declare.load([path, path])
    assert [problem.code for problem in caught.value.problems] == ["AB106"]


def test_warnings_do_not_stop_anybody(tmp_path: Path) -> None:
    text = (
        "version: 1\nname: shop\nclusters:\n  a: {bootstrap: 'x:1'}\n  b: {bootstrap: ['y:1', 'X:1']}\n"
        "  c: {bootstrap: 'z:1'}\nflows: [{from: a, to: b}]\n"
    )
    told = [(place(problem, tmp_path), problem.code) for problem in warnings(tmp_path, text)]
    assert told == [("0.yaml:5:26 (clusters.b.bootstrap[1])", "AB191"), ("0.yaml:6:3 (clusters.c)", "AB190")]


def test_a_topology_without_flows_is_accepted(tmp_path: Path) -> None:
    assert load(tmp_path, HEAD).flows == ()


@pytest.mark.parametrize("name", ["fan-out", "aggregation", "active-active", "xdcr"])
def test_the_examples_load_without_a_warning(name: str) -> None:
    told: list[object] = []
    topology = declare.load([examples()[name]], warn=told.append)
    assert told == []
    assert len(topology.clusters) <= 4
    assert all(flow.takes("payments", topology.aliases) for flow in topology.flows)
    assert {flow.origin for flow in topology.flows} == {f"replication[0] ({name})"}
