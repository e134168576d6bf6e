"""What `plan` and `apply` say of flows that cannot have what they ask for, on two real clusters."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import admin, create
from tests.support.commands.command import anabranch
from tests.support.security.installing import documented_class, documented_entry_points, install, with_path

DECLARATION = """\
version: 1
name: {name}
clusters:
  us-east: {{bootstrap: ["{source}"]}}
  ap-south: {{bootstrap: ["{localhost}"]}}
  eu-west: {{bootstrap: ["{target}"]}}
policy: {{type: identity}}
replication:
  - aggregation: {{from: [us-east, ap-south], to: eu-west}}
    topics: {{include: ["{topic}"]}}
"""


@pytest.fixture
def aggregation(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> Path:
    """Two flows whose copies would be one topic; one source is declared under two names."""
    source = source_cluster.bootstrap
    path = tmp_path / "aggregation.yaml"
    path.write_text(
        DECLARATION.format(
            name=topic_name[-40:].strip("-"),
            source=source,
            localhost=source.replace("127.0.0.1", "localhost"),
            target=target_cluster.bootstrap,
            topic=topic_name,
        )
    )
    create(source_cluster, topic_name)
    return path


def test_a_plan_is_drawn_with_what_it_adds_in_colour(aggregation: Path) -> None:
    drawn = anabranch("plan", aggregation, "--format", "svg", "--detailed-exitcode")
    assert (drawn.code, drawn.stdout.count("<svg ")) == (3, 1)
    assert '<g class="cluster add" data-cluster="eu-west">' in drawn.stdout
    assert '<g class="cluster absent" data-cluster="us-east">' in drawn.stdout
    # One topic is made for both flows; it counts once, at the first of them that made it.
    tones = dict(re.findall(r'<g class="flow (\w+)" data-flow="([\w-]+)">', drawn.stdout))
    assert tones == {"add": "ap-south-eu-west", "same": "us-east-eu-west"}
    chart = anabranch("plan", aggregation, "--format", "mermaid").stdout
    assert chart.startswith("flowchart LR\n")
    assert re.search(r"^  class c2 add$", chart, re.MULTILINE)
    refused = anabranch("apply", aggregation, "--yes", "--format", "svg")
    assert (refused.code, refused.stdout) == (2, "")


def test_what_cannot_have_identical_offsets_is_planned_with_translated_ones(
    aggregation: Path, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    shown = anabranch("plan", aggregation)
    assert shown.code == 0
    assert "one offset cannot be two" in shown.stdout

    applied = anabranch("apply", aggregation, "--yes", "--format", "json")
    assert applied.code == 0
    (west,) = json.loads(applied.stdout)["plan"]["clusters"]
    assert west["not_started"] == []
    assert [(flow["offsets"], flow["fill"]) for flow in west["flows"]] == [("translated", "markers")] * 2
    client = admin(target_cluster)
    assert topic_name in client.list_topics(timeout=30).topics


@pytest.mark.parametrize(
    ("command", "field", "code", "said"),
    [
        ("plan", "quota: 0", "AB104", "expected bytes per second above 0"),
        ("replicate", "quota: -5MB/s", "AB104", "found '-5MB/s'"),
        ("plan", "offsets: identical", "AB117", "both write"),
        ("apply", "dlq: __consumer_offsets", "AB104", "the name of a topic that is not internal"),
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_stands(
    aggregation: Path, command: str, field: str, code: str, said: str
) -> None:
    aggregation.write_text(aggregation.read_text() + f"    {field}\n")
    ended = anabranch(command, aggregation)
    assert (ended.code, ended.stdout) == (1, "")
    assert f"{aggregation.name}:" in ended.stderr
    assert said in ended.stderr
    assert f"[{code}]" in ended.stderr


CLASSED = """\
version: 1
name: {name}
clusters:
  us-east: {{bootstrap: ["{source}"]}}
  eu-west: {{bootstrap: ["{target}"]}}
policy: {{type: class, class: by-region, options: {{region: emea}}}}
flows:
  - {{from: us-east, to: eu-west, topics: {{include: ["{topic}.*"]}}}}
"""


def test_a_policy_class_names_copies_and_one_that_lumps_them_is_refused_before_anything_is_made(
    tmp_path: Path,
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = {"source": source_cluster.bootstrap, "target": target_cluster.bootstrap, "topic": topic_name}
    file = tmp_path / "classed.yaml"
    file.write_text(CLASSED.format(name=topic_name[-40:].strip("-"), **names))
    for topic in (topic_name, f"{topic_name}-b"):
        create(source_cluster, topic)
    site = install(tmp_path, documented_class(), documented_entry_points())
    monkeypatch.setenv("PYTHONPATH", with_path(site)["PYTHONPATH"])

    module = site / "acme_naming.py"
    module.write_text(documented_class().replace("{source}.{topic}", "{source}.all").replace("upstream", "unasked"))
    for command in (("plan", file), ("apply", file, "--yes")):
        refused = anabranch(*command)
        assert (refused.code, refused.stdout) == (4, ""), refused
        assert "classed.yaml:6:30: flow us-east-eu-west: expected a name of its own for each copy" in refused.stderr
        assert f"found emea.us-east.all for {topic_name}, {topic_name}-b of us-east (policy.class) [AB408]" in (
            refused.stderr
        )
    assert not [name for name in admin(target_cluster).list_topics(timeout=30).topics if name.startswith("emea.")]

    module.write_text(documented_class())
    applied = anabranch("apply", file, "--yes")
    assert applied.code == 0, applied.stderr
    made = {name for name in admin(target_cluster).list_topics(timeout=30).topics if name.startswith("emea.")}
    assert made == {f"emea.us-east.{topic_name}", f"emea.us-east.{topic_name}-b"}
    assert anabranch("plan", file, "--detailed-exitcode").code == 0
