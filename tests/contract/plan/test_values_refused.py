"""What no broker takes is told by the plan, where it is declared: a target is asked, and nothing is changed there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.cli.main import main
from reconciler.embedded import EmbeddedCluster
from reconciler.observe.topology import observe
from tests.support.clusters.kafka import admin, create
from tests.support.commands.command import anabranch

DECLARED = """\
version: 1
name: refused
clusters:
  north: {{bootstrap: ["{source}"]}}
  south: {{bootstrap: ["{target}"]}}
flows:
  - from: north
    to: south
    topics: {{include: ["{topic}.*"]}}
{fields}"""


class Cli:
    def __init__(
        self,
        clusters: tuple[EmbeddedCluster, EmbeddedCluster],
        path: Path,
        topic: str,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.clusters, self.path, self.topic, self.capsys = clusters, path, topic, capsys

    def __call__(self, command: str, *fields: str) -> tuple[int, str]:
        source, target = (one.bootstrap for one in self.clusters)
        written = "".join(f"    {field}\n" for field in fields)
        self.path.write_text(DECLARED.format(source=source, target=target, topic=self.topic, fields=written))
        code = main([command, str(self.path), *(["--yes"] if command == "apply" else [])])
        said = self.capsys.readouterr()
        return code, " ".join(f"{said.out} {said.err}".split())


@pytest.fixture
def run(
    source_cluster: EmbeddedCluster,
    target_cluster: EmbeddedCluster,
    tmp_path: Path,
    topic_name: str,
    capsys: pytest.CaptureFixture[str],
) -> Cli:
    create(source_cluster, f"{topic_name}-1")
    create(source_cluster, f"{topic_name}-2")
    return Cli((source_cluster, target_cluster), tmp_path / "refused.yaml", topic_name, capsys)


WRONG = (
    "configs:",
    "  set:",
    "    retention.ms: 7d",
    "    retention.msx: 5",
    "    max.message.bytes: 1_000_000",
    "    cleanup.policy: compact;delete",
    "    min.cleanable.dirty.ratio: 2",
    "    segment.ms: 3600000",
)


def check_each(said: str, path: Path) -> None:
    for line, key, column, words, remedy in (
        (12, "retention.ms", 23, "found 7d: Not a number of type LONG", "write retention.ms: 604800000"),
        (13, "retention.msx", 24, "south has no setting retention.msx of topics", "did you mean retention.ms?"),
        (14, "max.message.bytes", 28, "found 1_000_000: Not a number of type INT", "write max.message.bytes: 1000000"),
        (
            15,
            "cleanup.policy",
            25,
            "found compact;delete: String must be one of",
            "write cleanup.policy: compact,delete",
        ),
        (16, "min.cleanable.dirty.ratio", 36, "found 2: ", "write a value of min.cleanable.dirty.ratio that the"),
    ):
        assert f"{path}:{line}:{column}" in said
        assert f'(flows[0].configs.set["{key}"])' in said
        assert words in said, said
        assert remedy in said, said
    assert said.count("[AB453]") == 5, "once for each value, and not for each topic"


def test_declared_settings_that_the_target_does_not_take_are_told_at_their_place(
    run: Cli, target_cluster: EmbeddedCluster
) -> None:
    code, said = run("plan", *WRONG)
    assert code == 4, said
    check_each(said, run.path)
    copies = {f"north.{run.topic}-{number}" for number in (1, 2)}
    assert copies.isdisjoint(admin(target_cluster).list_topics(timeout=30).topics), "a plan makes nothing"

    # Where all copies are there one of them is asked about.
    code, said = run("apply", "configs: {set: {retention.ms: 604800000}}")
    assert code == 0, said
    code, said = run("apply", *WRONG)
    assert code == 4, said
    check_each(said, run.path)


def test_what_the_target_would_refuse_is_told_before_the_review(run: Cli) -> None:
    """More partitions than a controller makes at once: only the cluster knows that."""
    code, said = run("plan", "partitions: 20000")
    assert code == 4, said
    assert said.count("[AB451]") == 1, "what is said of both topics is said once"
    assert f"topics north.{run.topic}-1, north.{run.topic}-2: " in said
    assert "south would refuse it: " in said

    # Another one is refused for its name, whatever it is made with.
    create(run.clusters[1], f"north_{run.topic}-2")
    code, said = run("plan")
    assert (code, said.count("[AB452]"), said.count("[AB451]")) == (4, 1, 0), said
    assert f"topic north.{run.topic}-2: differs from topic north_{run.topic}-2 in . and _ alone" in said


def test_topics_that_a_run_makes_meanwhile_have_the_plan_made_again(run: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def looked(*arguments: Any, **options: Any) -> Any:
        nonlocal looks
        looks += 1
        found = observe(*arguments, **options)
        if looks == 1:
            ended = anabranch("apply", run.path, "--yes")
            assert ended.code == 0, ended
        return found

    monkeypatch.setattr("reconciler.observe.topology.observe", looked)
    code, said = run("plan")
    assert (code, looks) == (0, 2), said
    assert "topics were made meanwhile: looking again" in said
    assert "0 to add, 0 to change, 0 to delete." in said
