"""MirrorMaker 1 converted: files of consumers and of the producer, and the options of its command."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.convert.conversion import Converted, convert_mirror_maker1
from reconciler.model.base.errors import DeclaredInputError
from tests.support.commands.command import anabranch
from tests.support.converting import declared, lost

CONSUMER = """\
bootstrap.servers=kafka-source-server1:6667,kafka-source-server2:6667
groupid=dp-MirrorMaker-group
exclude.internal.topics=true
client.id=mirror_maker_consumer
isolation.level=read_committed
"""
PRODUCER = """\
bootstrap.servers=kafka-target-server1:6667,kafka-target-server2:6667
acks=1
batch.size=100
compression.type=gzip
client.id=mirror_maker_producer
"""


def files(folder: Path, sources: int = 1) -> tuple[list[Path], Path]:
    consumers = []
    for number in range(sources):
        path = folder / f"consumer{number}.properties"
        path.write_text(CONSUMER.replace("kafka-source", f"kafka-source-{number}"))
        consumers.append(path)
    (folder / "producer.properties").write_text(PRODUCER)
    return consumers, folder / "producer.properties"


def made(folder: Path, sources: int = 1, *, include: str | None = None, exclude: str | None = None) -> Converted:
    consumers, producer = files(folder, sources)
    return convert_mirror_maker1(consumers, producer, include=include, exclude=exclude)


def test_a_flow_that_keeps_names_and_takes_no_groups(tmp_path: Path) -> None:
    consumers, producer = files(tmp_path)
    found = convert_mirror_maker1(consumers, producer, include='"orders.*,payments"', streams=3)
    topology = declared(tmp_path, found)
    (flow,) = topology.flows
    assert (flow.source, flow.target, flow.policy.kind, flow.tasks) == ("source", "target", "identity", 3)
    assert flow.topics.include == ("orders.*", "payments")
    assert (flow.groups.include, flow.heartbeats) == ((), 0)
    assert (flow.isolation_level, flow.compression) == ("read_committed", "gzip")
    assert topology.clusters["source"].bootstrap == ("kafka-source-0-server1:6667", "kafka-source-0-server2:6667")
    assert set(lost(found)) == {"groupid", "exclude.internal.topics", "acks"}


def test_each_consumer_is_a_source(tmp_path: Path) -> None:
    topology = declared(tmp_path, made(tmp_path, 2, include=".*"))
    assert [(flow.source, flow.target) for flow in topology.flows] == [("source-1", "target"), ("source-2", "target")]


def test_a_list_of_what_is_left_out(tmp_path: Path) -> None:
    (flow,) = declared(tmp_path, made(tmp_path, exclude="__consumer_offsets")).flows
    assert (flow.topics.include, flow.topics.exclude) == ((".*",), ("__consumer_offsets",))


@pytest.mark.parametrize(("include", "exclude"), [(None, None), ("a", "b")])
def test_exactly_one_of_the_two_lists_is_needed(include: str | None, exclude: str | None, tmp_path: Path) -> None:
    with pytest.raises(DeclaredInputError, match=r"exactly one of --include.*\[AB141\]"):
        made(tmp_path, include=include, exclude=exclude)


def test_its_options_as_its_command_has_them(tmp_path: Path) -> None:
    consumers, producer = files(tmp_path, 2)
    given = [word for path in consumers for word in ("--consumer.config", path)]
    command = ("convert", *given, "--num.streams", "2", "--producer.config", producer, "--whitelist=.*")
    converted = anabranch(*command)
    assert converted.code == 0
    assert "tasks: 2  # --num.streams, the command line" in converted.stdout
    assert "no equal: " in converted.stderr
    assert anabranch(*command, "--strict").code == 3
    without = anabranch("convert", *given, "--whitelist=.*")
    assert (without.code, "it names the target" in without.stderr) == (2, True)
    both = anabranch(*command, producer)
    assert (both.code, "expected either files" in both.stderr) == (2, True)


def test_a_file_is_written_once(tmp_path: Path) -> None:
    consumers, producer = files(tmp_path)
    out = tmp_path / "topology.yaml"
    command = ("convert", "--consumer.config", consumers[0], "--producer.config", producer, "--include", "a")
    written = anabranch(*command, "--out", out, "--name", "shop")
    assert (written.code, written.stdout) == (0, "")
    assert "name: shop\n" in out.read_text()
    again = anabranch(*command, "--out", out)
    assert (again.code, "[AB184]" in again.stderr) == (1, True)
