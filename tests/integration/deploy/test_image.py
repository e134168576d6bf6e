"""The image of deployments: built by podman, and run confined as in a pod: killed, started again, ended in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.demo.compare import compare
from reconciler.deploy.kubernetes import run
from reconciler.embedded import EmbeddedCluster
from tests.support.clusters.kafka import create, declared
from tests.support.clusters.traffic import Traffic
from tests.support.commands.command import anabranch
from tests.support.deploying import EAST_AND_WEST
from tests.support.image import IMAGE, Podman, lacking
from tests.support.replicator.copying import log_ends
from tests.support.waiting import eventually

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.timeout(3_600),
    pytest.mark.skipif(bool(lacking()), reason=f"no image can be built: {lacking()}"),
]

RECORDS = 30_000
FILE = (
    EAST_AND_WEST
    + """\
flows:
  - {{from: east, to: west, topics: {{include: ["{name}"]}}, heartbeats: false}}
"""
)
FILES = "/etc/anabranch"


@pytest.fixture(scope="module")
def podman(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    folder = tmp_path_factory.mktemp("podman")
    found = Podman(folder)
    try:
        found.build()
        yield found
    finally:
        found.close()


def test_it_holds_what_it_says_and_no_root(podman: Podman) -> None:
    assert podman.run("--version").stdout.startswith("anabranch ")
    who = podman.run("/bin/sh", "-c", "id -u; command -v pip gcc javac; touch /opt/x; echo $?")
    assert who.stdout.split() == ["10001", "1"], who
    labels = json.loads(podman.inspect(IMAGE, "{{json .Config.Labels}}"))
    assert labels["org.opencontainers.image.title"] == "Anabranch"
    listed = podman.run("/bin/sh", "-c", "cat /opt/anabranch/share/sbom/*.cdx.json").stdout
    assert {"pyspark", "kafka-python"} <= {one["name"] for one in json.loads(listed)["components"]}
    refused = podman.run("executor")
    assert (refused.returncode, "drivers alone" in refused.stderr) == (64, True)
    print(f"image: {int(podman.inspect(IMAGE, '{{.Size}}')) / 1e6:.0f} MB, {podman.packed() / 1e6:.0f} MB packed")


@pytest.fixture
def topology(
    tmp_path: Path, source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster, topic_name: str
) -> tuple[Path, str]:
    """A topology that is applied, readable for the user of the image, and the topic that it copies."""
    name = f"s{topic_name[-8:]}"
    create(source_cluster, name, 2)
    folder = tmp_path / "files"
    folder.mkdir()
    file = folder / "shop.yaml"
    file.write_text(FILE.format(name=name, east=source_cluster.bootstrap, west=target_cluster.bootstrap))
    (folder / "run.py").write_text(Path(run.__file__).read_text())
    for path in (*folder.parents, folder, *folder.iterdir()):
        if path.is_relative_to(tmp_path):
            path.chmod(0o755)
    assert anabranch("apply", file, "--yes").code == 0
    return file, name


def test_a_flow_is_killed_started_again_and_ended_in_order(
    podman: Podman, topology: tuple[Path, str], source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    file, name = topology
    mounts = [f"--volume={file.parent}:{FILES}:ro"]
    checked = podman.run("doctor", f"{FILES}/shop.yaml", options=mounts)
    assert (checked.returncode, "west" in checked.stdout) == (0, True), checked
    west = declared("west", target_cluster)
    traffic = Traffic(source_cluster, name, 2, RECORDS, 500, per_second=500)
    traffic.start()
    podman.start("flow", "replicate", f"{FILES}/shop.yaml", "--wait=forever", options=mounts)
    try:
        eventually("the flow runs", lambda: log_ends(west, f"east.{name}", 2) > 0, detail=lambda: podman.log("flow"))
        podman.kill("flow")
        podman.again("flow")
        traffic.finish()
        eventually(
            "all is copied",
            lambda: log_ends(west, f"east.{name}", 2) >= RECORDS,
            detail=lambda: podman.log("flow"),
        )
        assert podman.stop("flow", 120) == 0, podman.log("flow")
    finally:
        podman.remove("flow")
    for isolation in ("read_committed", "read_uncommitted"):
        found = compare(declared("east", source_cluster), name, west, f"east.{name}", isolation)
        assert (found.is_identical, found.records) == (True, RECORDS), found.different


def test_a_driver_of_the_operator_copies(
    podman: Podman, topology: tuple[Path, str], source_cluster: EmbeddedCluster, target_cluster: EmbeddedCluster
) -> None:
    file, name = topology
    Traffic(source_cluster, name, 2, 2_000, 2_000).run()
    ended = podman.run(
        *("driver", "--conf", "spark.master=local[1]", "--class", "org.apache.spark.deploy.PythonRunner"),
        *(f"local://{FILES}/run.py", "replicate", f"{FILES}/shop.yaml", "--until-caught-up"),
        options=[f"--volume={file.parent}:{FILES}:ro", "--env=SPARK_DRIVER_BIND_ADDRESS=127.0.0.1"],
    )
    assert ended.returncode == 0, ended.stderr[-3_000:]
    west = declared("west", target_cluster)
    found = compare(declared("east", source_cluster), name, west, f"east.{name}", "read_committed")
    assert (found.is_identical, found.records) == (True, 2_000), found.different
