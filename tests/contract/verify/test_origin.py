"""What a file of `verify --resume` is bound to, at real brokers: their clusters, and topics with their ids."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.embedded import EmbeddedCluster
from reconciler.model.base.errors import EnvironmentFault, Unreachable
from reconciler.model.declared.topology import Topology
from reconciler.model.tasks.spec import FlowSpec
from reconciler.replicator.spark.jobs import SparkJobs
from reconciler.verify.drive import Options, Verify, VerifyWatcher
from reconciler.verify.origin import made_anew, objections, origin_of
from reconciler.verify.survey import Survey, VerifyFilter
from tests.support.clusters.kafka import create, declared, delete
from tests.support.replicator.copying import fill, spec_of

SILENT = VerifyWatcher(warn=print, phase=lambda _: None, seen=lambda _: None)


@pytest.fixture
def spec(source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str) -> FlowSpec:
    create(source_cluster, topic_name)
    create(target_cluster, f"east.{topic_name}")
    fill(source_cluster, topic_name, 3)
    return spec_of(declared("east", source_cluster), declared("west", target_cluster), topic_name)


def test_clusters_tell_their_ids(spec: FlowSpec) -> None:
    now = origin_of(spec)
    assert (len(now.source), len(now.target)) == (22, 22)
    assert now.source != now.target
    assert origin_of(replace(spec, run="another", round_seconds=9.0)) == now
    # The clusters' addresses are no part of it: what answers there tells who it is.
    assert list(objections("file", spec, now, now)) == []
    swapped = replace(spec, source=replace(spec.source, bootstrap=spec.target.bootstrap))
    found = list(objections("file", swapped, now, origin_of(swapped)))
    assert [(problem.code, f"a cluster with the id {now.source}" in problem.message) for problem in found] == [
        ("AB614", True)
    ]
    other = replace(spec, flow=replace(spec.flow, isolation_level="read_uncommitted"))
    assert [problem.code for problem in objections("file", other, now, origin_of(other))] == ["AB610"]


def test_topics_that_were_made_anew_are_others(
    spec: FlowSpec, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> None:
    bounds = list(Survey(spec, VerifyFilter(), print).look().bounds)
    assert made_anew("file", spec, bounds) == []
    delete(target_cluster, f"east.{topic_name}")
    assert [problem.code for problem in made_anew("file", spec, bounds)] == ["AB614"]
    create(target_cluster, f"east.{topic_name}")
    delete(source_cluster, topic_name)
    create(source_cluster, topic_name)
    told = [problem.message for problem in made_anew("file", spec, bounds)]
    assert told == [
        f"{spec.source.where}: topic {topic_name} was compared, and is another one by now",
        f"{spec.target.where}: topic east.{topic_name} was compared, and is another one by now",
    ]


def test_a_cluster_that_is_away_is_unreachable(spec: FlowSpec) -> None:
    with pytest.raises(Unreachable):
        origin_of(replace(spec, source=replace(spec.source, bootstrap=("127.0.0.1:9",))))


def test_a_comparison_does_not_go_on_with_a_topic_made_anew(
    spec: FlowSpec, target_cluster: EmbeddedCluster, topic_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ended(Exception):
        pass

    def ended(*_: object) -> None:
        raise Ended

    # It is ended once it has looked, and before it compares: its file stands then.
    for name, stands_for in (("open", lambda _: None), ("abandon", lambda _: None), ("start", ended)):
        monkeypatch.setattr(SparkJobs, name, stands_for)
    one = Topology("tests", {"east": spec.source, "west": spec.target}, (spec.flow,))
    options = Options(tmp_path, resume=tmp_path / "progress.json")
    for _ in range(2):
        with pytest.raises(Ended):
            Verify(one, one.flows, options, SILENT).run()
    delete(target_cluster, f"east.{topic_name}")
    create(target_cluster, f"east.{topic_name}")
    with pytest.raises(EnvironmentFault, match="AB614"):
        Verify(one, one.flows, options, SILENT).run()
