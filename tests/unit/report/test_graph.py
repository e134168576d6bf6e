"""A topology as a tree and as a Mermaid flowchart."""

from __future__ import annotations

import re
from pathlib import Path

from reconciler import declare
from reconciler.declare.documents.resources import examples
from reconciler.report.pictures.graph import graph_mermaid, graph_text
from tests.unit.declare.declaring import HEAD, load

BODY = """
replication:
  - fan-out: {from: a, to: [b, c]}
    topics: {include: ["orders.*", users], exclude: [".*-tmp"]}
flows:
  - {from: a, to: c, tasks: 3, policy: {type: identity}, offsets: identical, replication-factor: 2}
  - {from: b, to: a, name: back, topics: {include: ['say["#;]?hi|x.*']}, enabled: false}
"""

# What of Mermaid's flowchart grammar is used: quoted labels hold no quotes, and # stands in entities alone.
LABEL = r'"(?:[^"#]|#\d+;)*"'
MERMAID_LINE = re.compile(
    rf"flowchart LR|  subgraph d\d+\[{LABEL}\]|    c\d+\[{LABEL}\]|  end|  c\d+ (?:-->|-\.->)\|{LABEL}\| c\d+"
)


def test_text_groups_clusters_by_data_centre_and_flows_by_source(tmp_path: Path) -> None:
    topology = load(tmp_path, HEAD.replace("{bootstrap", "{datacenter: dc1, bootstrap", 1) + BODY)
    assert graph_text(topology).plain.splitlines() == [
        "shop · 4 clusters, 3 flows",
        "",
        "dc1",
        "  a  b1.a.example:9092",
        "    → b   orders.*, users (without .*-tmp)   as a.<topic>",
        "    → c   orders.*, users (without .*-tmp)   same names     offsets identical, 3 tasks, replication factor 2",
        "",
        "default",
        "  b  b1.b.example:9092",
        '    → a   say["#;]?hi|x.*                    as b.<topic>   flow back, disabled',
        "  c  b1.c.example:9092",
        "  d  b1.d.example:9092",
    ]


def test_a_flow_that_is_failed_over_is_told_and_dotted(tmp_path: Path) -> None:
    topology = load(tmp_path, HEAD + "flows: [{from: a, to: b, failed-over: true}, {from: b, to: a}]\n")
    lines = graph_text(topology).plain.splitlines()
    assert [line for line in lines if "failed over" in line] == ["    → b   .*   as a.<topic>   failed over"]
    assert [line for line in graph_mermaid(topology).splitlines() if "-.->" in line] == [
        '  c0 -.->|".#42;<br/>as a.#60;topic#62;<br/>failed over"| c1'
    ]


def test_mermaid_is_well_formed_whatever_names_hold(tmp_path: Path) -> None:
    topology = load(tmp_path, HEAD + BODY)
    lines = graph_mermaid(topology).splitlines()
    assert [line for line in lines if not MERMAID_LINE.fullmatch(line)] == []
    assert lines == [
        "flowchart LR",
        '  subgraph d0["default"]',
        '    c0["a"]',
        '    c1["b"]',
        '    c2["c"]',
        '    c3["d"]',
        "  end",
        '  c0 -->|"orders.#42;, users (without .#42;-tmp)<br/>as a.#60;topic#62;"| c1',
        '  c0 -->|"orders.#42;, users (without .#42;-tmp)<br/>same names<br/>'
        'offsets identical, 3 tasks, replication factor 2"| c2',
        '  c1 -.->|"say[#34;#35;#59;]?hi#124;x.#42;<br/>as b.#60;topic#62;<br/>flow back, disabled"| c0',
    ]


def test_mermaid_has_a_subgraph_for_each_data_centre_of_an_example() -> None:
    topology = declare.load([examples()["xdcr"]])
    chart = graph_mermaid(topology)
    assert all(MERMAID_LINE.fullmatch(line) for line in chart.splitlines())
    assert chart.count("subgraph ") == chart.count("  end\n") == 2
    assert chart.count("-->") == len(topology.flows) == 6


def test_a_topology_without_flows(tmp_path: Path) -> None:
    topology = load(tmp_path, HEAD)
    assert graph_text(topology).plain.startswith("shop · 4 clusters, 0 flows")
    assert "-->" not in graph_mermaid(topology)


def test_renamed_topics_are_told_with_what_becomes_of_the_others(tmp_path: Path) -> None:
    rules = "policy: {type: rename, rules: [{from: x, to: y}, {from: z, to: w}]}\n"
    own = ", policy: {otherwise: identity, rules: [{from: x, to: y}]}"
    lines = graph_text(load(tmp_path, HEAD + rules + f"flows: [{{from: a, to: b}}, {{from: b, to: c{own}}}]\n")).plain
    assert "→ b   .*   renamed by 2 rules, others as a.<topic>" in lines
    assert "→ c   .*   renamed by 1 rule, others same names" in lines
